"""Occurrences of words with their vectors, and how they resemble each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from .blanks import around

TIE = 1e-5  # cosines that differ by less are equal


class Context(NamedTuple):
    """One occurrence of a word.

    Attributes:
        left, word, right: the text before it, itself, and the text after it.
        layers: its vectors ``(L + 1, 2P)``.
        sense: what it means here, if that is known.
    """

    left: str
    word: str
    right: str
    layers: np.ndarray
    sense: str = ""

    @property
    def text(self) -> tuple[str, str, str]:
        return self.left, self.word, self.right


def context(doc: Doc, i: int, sense: str = "") -> Context:
    """The occurrence of a Doc's token, with the text around it."""
    return Context(*around(doc, i, 0, len(doc)), doc._.elmo_layers[:, i], sense)


def labelled(nlp: Language, sentences: Sequence[tuple[str, str, str]]) -> dict[str, list[Context]]:
    """Read ``(word, sense, sentence)``: for each word its occurrences.

    Raises:
        ValueError: a sentence does not hold its word exactly once.
    """
    found = defaultdict(list)
    docs = nlp.pipe(sentence for _, _, sentence in sentences)
    for (word, sense, sentence), doc in zip(sentences, docs, strict=True):
        places = [token.i for token in doc if token.text == word]
        if len(places) != 1:
            raise ValueError(f"{word!r} must occur once, not {len(places)} times, in: {sentence}")
        found[word].append(context(doc, places[0], sense))
    return dict(found)


def vectors(contexts: Iterable[Context], layer: int | None) -> np.ndarray:
    """Vectors ``(n, 2P)`` of one layer, or with None the even mix of all."""
    layers = np.stack([c.layers for c in contexts])
    return layers.mean(axis=1) if layer is None else layers[:, layer]


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosines ``(n, m)`` of the rows of ``a`` ``(n, D)`` and ``b`` ``(m, D)``."""
    a = a / np.linalg.norm(a, axis=1, keepdims=True).clip(1e-12)
    b = b / np.linalg.norm(b, axis=1, keepdims=True).clip(1e-12)
    return a @ b.T


def hits(contexts: Sequence[Context], layer: int | None) -> np.ndarray:
    """Whether each occurrence's nearest other one has the same sense, ``(n,)``.

    Where several are equally near, it is the share of them that have it: what picking one of them
    blindly is right in on average.
    """
    x = vectors(contexts, layer)
    similarity = cosines(x, x)
    np.fill_diagonal(similarity, -np.inf)
    nearest = similarity >= similarity.max(axis=1, keepdims=True) - TIE
    senses = np.array([c.sense for c in contexts])
    same = senses[:, None] == senses[None, :]
    return (nearest & same).sum(axis=1) / nearest.sum(axis=1)


def chance(contexts: Sequence[Context]) -> np.ndarray:
    """How often any other occurrence, picked blindly, has the same sense, ``(n,)``."""
    senses = np.array([c.sense for c in contexts])
    same = (senses[:, None] == senses[None, :]).sum(axis=1) - 1
    return same / (len(contexts) - 1)


def group(similarity: np.ndarray) -> tuple[np.ndarray, list[list[int]]]:
    """Group occurrences by linking each to its nearest other one.

    Args:
        similarity: ``(n, n)``, n ≥ 2.

    Returns:
        Each one's nearest ``(n,)``, and the groups, which are the connected parts, in the order
        of their first members.
    """
    similarity = similarity.copy()
    np.fill_diagonal(similarity, -np.inf)
    nearest = similarity.argmax(axis=1)
    label = np.arange(len(nearest))
    for i, j in enumerate(nearest):
        label[label == label[j]] = label[i]
    groups: dict[int, list[int]] = {}
    for i, name in enumerate(label.tolist()):
        groups.setdefault(name, []).append(i)
    return nearest, list(groups.values())
