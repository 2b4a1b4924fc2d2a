"""Vectors that are compared.

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

spaCy's hooks are at module level, because Docs that refer to them are pickled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import ORTH
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token
from thinc.api import to_numpy
from thinc.types import Floats3d

from ..text.segments import DocPart
from ..weights.statistics import Statistics
from .readings import NotOnDocError, Reading, bounds, get_elmo, last_reading, rows_of

RARITY = 3e-4  # SIF's a
MIN_STD = 1e-6  # of a layer's dimension
MAX_FLOAT16 = 65504


class ComparedRows:
    """The rows of a Doc from which its compared vectors are computed, when they are asked for.

    Args:
        statistics: of the weights.
        part: the first of the Doc, or all of it.
        normalize: words to the form in which the statistics have them.
    """

    def __init__(self, statistics: Statistics, part: DocPart, normalize: Callable[[str], str]):
        self._statistics, self._sentences = statistics, part.sentences
        self._orths = part.doc.to_array([ORTH]).astype(np.uint64)
        for token in part.doc:
            if not token.is_ascii:
                self._orths[token.i] = get_string_id(normalize(token.text))
        p = len(statistics.word_mean)
        self._words = np.zeros((len(part.doc), p), dtype="float32")
        self._top = np.zeros((len(part.doc), 2 * p), dtype="float16")

    def add(self, part: DocPart, layers: Floats3d) -> None:
        """Take over what is needed of the layers ``(L + 1, n_tokens, 2P)`` of a part."""
        statistics, rows = self._statistics, slice(part.start, part.end)
        self._words[rows] = to_numpy(layers[0, :, : self._words.shape[1]])
        top = (to_numpy(layers[-1]) - statistics.mean[-1]) / np.maximum(statistics.std[-1], MIN_STD)
        self._top[rows] = np.clip(top, -MAX_FLOAT16, MAX_FLOAT16)

    def __reduce__(self) -> Any:
        """Pickles and deep copies have the rows alone."""
        return _Rows, (self.rows,)

    @cached_property
    def rows(self) -> np.ndarray:
        """Word, left and right context of each token, ``(n_tokens, 3P)``, in half precision.

        The length of the word's part is its rarity. Contexts end at the sentence's ends;
        whitespace has zeros.
        """
        n_tokens, p = self._words.shape
        rows = np.zeros((n_tokens, 3 * p), dtype="float16")
        tokens, bounds = self._sentences
        if bounds:
            words = unit(self._statistics.whiten(self._words[tokens]))
            p_words = self._statistics.frequencies_of(self._orths[tokens])
            with np.errstate(under="ignore"):
                rows[tokens, :p] = words * (RARITY / (RARITY + p_words))[:, None]
            rows[tokens[1:], p : 2 * p] = self._top[tokens[:-1], :p]
            rows[tokens[:-1], 2 * p :] = self._top[tokens[1:], p:]
            starts, ends = np.array(bounds).T
            rows[tokens[starts], p : 2 * p] = rows[tokens[ends - 1], 2 * p :] = 0
        return rows


class _Rows(NamedTuple):
    rows: np.ndarray


def compared_vector(rows: np.ndarray) -> np.ndarray:
    """The vector of a token, a Span or a Doc from the rows of its tokens, ``(3P,)``, float32."""
    p = rows.shape[1] // 3
    rows = rows[rows[:, :p].any(axis=1)].astype("float32")  # not whitespace
    if not len(rows):
        return np.zeros(3 * p, dtype="float32")
    context = np.concatenate([rows[0, p : 2 * p], rows[-1, 2 * p :]])
    return np.concatenate([unit(rows[:, :p].sum(axis=0)), unit(context)])


def occurrence_vector(rows: np.ndarray, i: int) -> np.ndarray:
    """A vector that tells the senses of a word apart, from the rows of its sentence, ``(5P,)``.

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


def add_hooks(doc: Doc, reading: Reading) -> None:
    """Take ``vector``, ``has_vector``, ``vector_norm`` and ``similarity`` from ELMo.

    The hooks carry what they compare through copies and pickles; with bytes they are lost, as spaCy
    warns (W109).
    """
    own_vector = partial(vector, reading.ends, reading.compared)
    hooks: dict[str, Any] = {"vector": own_vector, "has_vector": has_vector}
    hooks["similarity"] = similarity
    # In new dicts: a part of a Doc shares those of the whole one.
    doc.user_span_hooks = {**doc.user_span_hooks, **hooks}
    doc.user_token_hooks = {**doc.user_token_hooks, **hooks}
    # Spans and Tokens compute `vector_norm` from `vector` (Spans would call the wrong hook for it).
    doc.user_hooks = {**doc.user_hooks, **hooks, "vector_norm": vector_norm}


def vector(ends: np.ndarray, compared: ComparedRows | None, obj: Doc | Span | Token) -> Any:
    """The vector by which an object is compared, ``(3P,)``; without statistics its ``._.elmo``.

    Args:
        ends: see `Reading`.
        compared: the rows of the Doc's tokens; None without statistics.
        obj: the object.

    Raises:
        NotOnDocError: the object's Doc is a part of the one that was read, or tokens were split.
    """
    if compared is None:
        return get_elmo(obj)
    doc, start, end = bounds(obj)
    return compared_vector(compared.rows[rows_of(doc, ends)][start:end])


def compared_rows(doc: Doc) -> np.ndarray | None:
    """The rows from which the vectors of a Doc's objects are computed, ``(n_tokens, 3P)``; None if
    the weights have no statistics.

    Raises:
        NotOnDocError: no component has read the Doc in this process, or its tokens were split.
    """
    reading = last_reading(doc)
    if reading is None or reading.vectors is None:
        raise NotOnDocError("This Doc has not been read: run the 'elmo' component on it.")
    compared = reading.compared
    return None if compared is None else compared.rows[rows_of(doc, reading.ends)]


def has_vector(obj: Doc | Span | Token) -> bool:
    """Return whether there is a vector that is not all zeros."""
    return bool(obj.vector.any())


def vector_norm(doc: Doc) -> float:
    """The vector's Euclidean length."""
    return _norm(doc.vector)


def similarity(obj: Doc | Span | Token, other: Any) -> float:
    """Cosine of two vectors, 0 if one of them is all zeros.

    If one of them has no context (a Doc's, a sentence's), the words alone are compared.

    Raises:
        ValueError: the other object's vector has another size, as a Lexeme's.
    """
    a, b = to_numpy(obj.vector), to_numpy(other.vector)
    if not a.any() or not b.any():
        return 0.0
    if a.shape != b.shape:
        raise ValueError(
            f"Cannot compare an ELMo vector of {a.shape[0]} dimensions with one of {b.shape[0]}. "
            f"Run both texts through the same pipeline, a lexeme's and a Doc's from bytes, too."
        )
    p = len(a) // 3
    if not a[p:].any() or not b[p:].any():
        a, b = a[:p], b[:p]
    return float(a.dot(b)) / (_norm(a) * _norm(b))


def _norm(vector: Any) -> float:
    return float(vector.dot(vector)) ** 0.5
