"""A trigram language model with interpolated modified Kneser-Ney smoothing.

Chen and Goodman 1999, with the lower orders at the start of a sentence as in Heafield et al. 2013:

    p(c | a b) = (n(abc) - D(n(abc))) / n(ab·) + γ(ab) p(c | b)

The n of shorter n-grams counts the distinct words before them, except at the start of a sentence,
where only ``<S>`` can stand before; γ is the share of its context's counts that the discounts D
have taken away. The last of the lower orders is the uniform distribution over the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

START, END = 0, 1  # <S> and </S> in a vocabulary of spacy-elmo
FALLBACK = np.array([0.0, 0.5, 1.0, 1.5])  # as in KenLM, where counts of counts are too few


def with_boundaries(sentences: Iterable[Sequence[int]]) -> np.ndarray:
    """All sentences in one array ``(n_tokens,)``, each between ``<S>`` and ``</S>``."""
    return np.fromiter(chain.from_iterable((START, *s, END) for s in sentences), dtype=np.int64)


def discounts(counts: np.ndarray) -> np.ndarray:
    """What is subtracted from counts of 0, 1, 2, and 3 or more."""
    n = np.bincount(np.minimum(counts, 5), minlength=5).astype(float)
    if not n[1:5].all():
        return FALLBACK
    y = n[1] / (n[1] + 2 * n[2])
    found = np.array([0.0, *(k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3))])
    return found if (found >= 0).all() else FALLBACK


def look_up(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray, default: float) -> np.ndarray:
    """The values of some keys, which are sorted; a default where there is no such key."""
    index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[index] == wanted, values[index], default)


class Order(NamedTuple):
    """The n-grams of one length. A key is an n-gram's number in base V, a context's without the
    last word.

    Attributes:
        keys: sorted.
        shares: each one's part of its context's counts, after the discount.
        contexts: sorted.
        backoffs: γ of each.
    """

    keys: np.ndarray
    shares: np.ndarray
    contexts: np.ndarray
    backoffs: np.ndarray

    @classmethod
    def fit(cls, keys: np.ndarray, counts: np.ndarray, n_words: int) -> Order:
        contexts, first, sizes = np.unique(keys // n_words, return_index=True, return_counts=True)
        totals = np.add.reduceat(counts, first)
        taken = discounts(counts)[np.minimum(counts, 3)]
        backoffs = np.add.reduceat(taken, first) / totals
        return cls(keys, (counts - taken) / np.repeat(totals, sizes), contexts, backoffs)

    def interpolate(self, keys: np.ndarray, n_words: int, lower: np.ndarray) -> np.ndarray:
        """Probabilities of n-grams, given those of the next lower order."""
        backoffs = look_up(self.contexts, self.backoffs, keys // n_words, 1.0)
        return look_up(self.keys, self.shares, keys, 0.0) + backoffs * lower


class KneserNey:
    """The model.

    Args:
        tokens: of the training text, see `with_boundaries`.
        n_words: V, the size of the vocabulary, `START` included, which is never predicted.
    """

    def __init__(self, tokens: np.ndarray, n_words: int):
        self.n_words = n_words
        b, c = tokens[:-1], tokens[1:]
        pairs = b * n_words + c
        inside = (b[1:] != START) & (c[1:] != START)  # no <S> but at the start
        triples = (tokens[:-2] * n_words**2 + pairs[1:])[inside]
        trigrams, counts = np.unique(triples, return_counts=True)
        starts, start_counts = np.unique(pairs[b == START], return_counts=True)
        bigrams, befores = np.unique(trigrams % n_words**2, return_counts=True)
        bigrams = np.concatenate([starts, bigrams])  # sorted, as START is 0
        befores = np.concatenate([start_counts, befores])
        words, befores_of_words = np.unique(bigrams % n_words, return_counts=True)
        self.orders = (
            Order.fit(words, befores_of_words, n_words),
            Order.fit(bigrams, befores, n_words),
            Order.fit(trigrams, counts, n_words),
        )

    def log_probabilities(self, tokens: np.ndarray) -> np.ndarray:
        """Natural logarithms for all tokens but `START`, see `with_boundaries`."""
        here = np.flatnonzero(tokens != START)
        keys = tokens[here]
        p = np.full(len(here), 1 / (self.n_words - 1))
        for distance, order in enumerate(self.orders):
            # Before the first word there is only <S>: no trigram is found, and p stays.
            if distance:
                keys = keys + tokens[np.maximum(here - distance, 0)] * self.n_words**distance
            p = order.interpolate(keys, self.n_words, p)
        return np.log(p)
