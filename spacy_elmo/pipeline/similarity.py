"""The vectors that ``similarity`` compares.

Cosines of raw layers say little: a few dimensions and frequent words dominate them, and in the LSTM
layers the word itself hides its context. The compared vector has three parts of P dimensions:

- the word: the token layer, whitened over distinct words, so that different words are nearly
  orthogonal. A Doc or Span has the sum for its words, weighted by rarity, ``a / (a + p(word))``
  (SIF, Arora et al. 2017).
- the left and the right context: the top layer, standardised, of the forward LSTM at the word
  before and of the backward LSTM at the word after, which both predict this word (as in
  context2vec, Melamud et al. 2016). A Span has the context around it; a sentence and a Doc have
  none.

Word and context are scaled to length 1, so that they count alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..text.segments import Sentences
from ..weights.statistics import Statistics

RARITY = 3e-4  # SIF's a


def compute_rows(
    statistics: Statistics, sentences: Sentences, frequencies: np.ndarray, words: Any, top: Any
) -> np.ndarray:
    """Each token's word, left context and right context, ``(n_tokens, 3P)``, in half precision.

    The first word of a sentence has no left context, the last word no right context; whitespace has
    zeros.

    Args:
        statistics: the statistics of the weights.
        sentences: the sentences of the Doc.
        frequencies: relative frequencies of the words, ``(n_tokens,)``; the length of the word's
            part is its rarity.
        words: first half of the token layer, ``(n_tokens, P)``.
        top: the top layer, standardised, ``(n_tokens, 2P)``.
    """
    n_tokens, p = words.shape
    rows = np.zeros((n_tokens, 3 * p), dtype="float16")
    tokens, bounds = sentences
    if bounds:
        vectors = unit(statistics.whiten(words[tokens]))
        with np.errstate(under="ignore"):
            rows[tokens, :p] = vectors * (RARITY / (RARITY + frequencies[tokens]))[:, None]
        rows[tokens[1:], p : 2 * p] = top[tokens[:-1], :p]
        rows[tokens[:-1], 2 * p :] = top[tokens[1:], p:]
        starts, ends = np.array(bounds).T
        rows[tokens[starts], p : 2 * p] = rows[tokens[ends - 1], 2 * p :] = 0
    return rows


def compared_vector(rows: np.ndarray) -> np.ndarray:
    """The compared vector ``(3P,)`` of a Token, Span or Doc, from the rows of its tokens."""
    p = rows.shape[1] // 3
    rows = rows[rows[:, :p].any(axis=1)].astype("float32")  # without whitespace
    if not len(rows):
        return np.zeros(3 * p, dtype="float32")
    context = np.concatenate([rows[0, p : 2 * p], rows[-1, 2 * p :]])
    return np.concatenate([unit(rows[:, :p].sum(axis=0)), unit(context)])


def occurrence_vector(rows: np.ndarray, i: int) -> np.ndarray:
    """A vector ``(5P,)`` that tells the senses of a word apart.

    It has three parts of length 1: the context of the word, the sum of the other words in the
    sentence, and the mean context in the sentence, which reflects its topic.

    Args:
        rows: the rows of one sentence's tokens, ``(n_tokens, 3P)``.
        i: index of the word among them.
    """
    rows = rows.astype("float32")
    p = rows.shape[1] // 3
    others = rows[:i, :p].sum(axis=0) + rows[i + 1 :, :p].sum(axis=0)
    return np.concatenate([unit(rows[i, p:]), unit(others), unit(rows[:, p:].mean(axis=0))])


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to length 1; zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(norms, np.float32(1e-12))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """The cosine of two compared vectors; 0 if one of them is all zeros.

    If one of them has no context, as a Doc's vector, only the words are compared.

    Raises:
        ValueError: the vectors have different sizes.
    """
    if a.shape != b.shape:
        raise ValueError(
            f"Cannot compare an ELMo vector of {a.shape[0]} dimensions with one of {b.shape[0]}. "
            f"Run both texts through the same pipeline, also lexemes and Docs from bytes."
        )
    p = len(a) // 3
    if not a[p:].any() or not b[p:].any():
        a, b = a[:p], b[:p]
    lengths = norm(a) * norm(b)
    return float(a.dot(b)) / lengths if lengths else 0.0


def norm(vector: Any) -> float:
    return float(vector.dot(vector)) ** 0.5
