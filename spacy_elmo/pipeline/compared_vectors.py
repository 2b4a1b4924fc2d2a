"""Vectors that are compared: what a word is, and what its context makes likely in its place.

The raw layers compare badly: a few dimensions and frequent words dominate their cosines, and in
the LSTM layers the word itself hides what its neighbours say about it. The vector compared has
three parts of P dimensions:

- word: the token layer, whitened over distinct words, so that different words are nearly
  orthogonal; in a Doc or a Span the sum of them, weighted by rarity, ``a / (a + p(word))`` (SIF,
  Arora et al. 2017).
- left and right context: the top layer, standardised, of the forward LSTM at the word before and of
  the backward LSTM at the word behind, which predict the word that stands here (as in context2vec,
  Melamud et al. 2016). A Span has the context around it; a sentence and a Doc have none.

Word and context are scaled to length 1, so that they count alike.
"""

from __future__ import annotations

import numpy as np
from spacy.attrs import ORTH
from spacy.strings import get_string_id
from spacy.tokens import Doc
from thinc.api import to_numpy
from thinc.types import Floats3d

from ..text.segments import Part, as_rows
from ..weights.statistics import Statistics

RARITY = 3e-4  # SIF's a


class Comparison:
    """Makes the rows from which compared vectors are computed.

    Args:
        statistics: of the weights.
    """

    def __init__(self, statistics: Statistics):
        self.statistics = statistics
        hashes = np.array([get_string_id(word) for word in statistics.words], dtype=np.uint64)
        order = np.argsort(hashes)
        # A last one that no word has: every hash is found before the end.
        self._hashes = np.append(hashes[order], np.uint64(2**64 - 1))
        rarity = RARITY / (RARITY + statistics.frequencies[order])
        self._rarity = np.append(rarity, 1).astype("float32")

    def empty_rows(self, doc: Doc) -> np.ndarray:
        """Zeros for the rows of a Doc, ``(n_tokens, 3P)`` in half precision."""
        return np.zeros((len(doc), 3 * len(self.statistics.word_mean)), dtype="float16")

    def add_rows(self, rows: np.ndarray, part: Part, layers: Floats3d) -> None:
        """Write word, left and right context to the rows of a Doc; whitespace has zeros.

        The length of the word's part is its rarity. Contexts end at the sentence's ends.

        Args:
            rows: of the Doc, whose parts come in order.
            part: the part.
            layers: of its tokens ``(L + 1, n_tokens, 2P)``.
        """
        statistics, p = self.statistics, len(self.statistics.word_mean)
        tokens, bounds = part.sentences
        first, last = np.searchsorted(tokens, [part.start, part.end])
        if first < last:
            inside = as_rows(tokens[first:last] - part.start)
            words = unit(statistics.whiten(to_numpy(layers[0, :, :p])[inside]))
            rows[as_rows(tokens[first:last]), :p] = words * self._rarities(part)[inside, None]
            top = (to_numpy(layers[-1])[inside] - statistics.mean[-1]) / statistics.std[-1]
            after, before = tokens[first + 1 : last + 1], tokens[max(first - 1, 0) : last - 1]
            if len(after):
                rows[as_rows(after), p : 2 * p] = top[: len(after), :p]
            if len(before):
                rows[as_rows(before), 2 * p :] = top[-len(before) :, p:]
        if bounds and part.end == len(part.doc):
            starts, ends = np.array(bounds).T
            rows[tokens[starts], p : 2 * p] = rows[tokens[ends - 1], 2 * p :] = 0

    def _rarities(self, part: Part) -> np.ndarray:
        """``(n_tokens,)``, 1 for unknown words."""
        orths = part.doc.to_array([ORTH])[part.start : part.end].astype(np.uint64)
        found = np.searchsorted(self._hashes, orths)
        return np.where(self._hashes[found] == orths, self._rarity[found], np.float32(1))


def compared_vector(rows: np.ndarray) -> np.ndarray:
    """The vector of a token, a Span or a Doc from the rows of its tokens, ``(3P,)``, float32."""
    p = rows.shape[1] // 3
    rows = rows[rows[:, :p].any(axis=1)].astype("float32")  # not whitespace
    if not len(rows):
        return np.zeros(3 * p, dtype="float32")
    context = np.concatenate([rows[0, p : 2 * p], rows[-1, 2 * p :]])
    return np.concatenate([unit(rows[:, :p].sum(axis=0)), unit(context)])


def occurrence_vector(rows: np.ndarray, i: int) -> np.ndarray:
    """What tells the senses of a word apart, from the rows of its sentence, ``(5P,)``, float32.

    It has three parts of length 1: the context of the word, the sum of the other words, and the
    mean context of the sentence, which is about its topic.

    Args:
        rows: of the tokens of one sentence, ``(n_tokens, 3P)``.
        i: the word's index among them.
    """
    rows = rows.astype("float32")
    p = rows.shape[1] // 3
    others = rows[:i, :p].sum(axis=0) + rows[i + 1 :, :p].sum(axis=0)
    return np.concatenate([unit(rows[i, p:]), unit(others), unit(rows[:, p:].mean(axis=0))])


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors scaled to the length 1; zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(norms, np.float32(1e-12))
