"""Ambiguous words in context, and how similar their vectors are."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from .find_blanks import around

# Sentences with ambiguous words, written for the demo. A heading names a word and one of its
# senses; each sentence below it contains the word once, in exactly this form. All of them count in
# the demo's scores, and all were written before any model had read them: choosing among them by a
# model's vectors would be cheating.
SENTENCES = Path(__file__).with_name("demo_sentences.txt")
# All senses of these are nouns: only the topic of the sentence tells them apart.
NOUNS = ("bank", "spring", "seal", "club", "letter", "crane", "plant")
TIE = 1e-5  # cosines that differ by less are equal


class Context(NamedTuple):
    """One occurrence of a word.

    Attributes:
        text: what is left of the word, the word, what is right of it.
        layers: ``(L + 1, 2P)``.
        sense: the word's meaning here, if known.
    """

    text: tuple[str, str, str]
    layers: np.ndarray
    sense: str = ""


def read_sentences() -> list[tuple[str, str, str]]:
    """The built-in sentences as ``(word, sense, sentence)``."""
    found = []
    word = sense = ""
    for line in filter(None, SENTENCES.read_text(encoding="utf-8").splitlines()):
        if line.startswith("# "):
            word, sense = line[2:].split(": ")
        else:
            found.append((word, sense, line))
    return found


def make_context(doc: Doc, i: int, sense: str = "") -> Context:
    """The occurrence of a Doc's token ``i``, with the text around it."""
    return Context(around(doc, i, 0, len(doc)), doc._.elmo_layers[:, i], sense)


def built_in_contexts(nlp: Language, words: Container[str]) -> dict[str, list[Context]]:
    """The occurrences of some words in the built-in sentences."""
    chosen = [row for row in read_sentences() if row[0] in words]
    found: dict[str, list[Context]] = {}
    docs = nlp.pipe(sentence for _, _, sentence in chosen)
    for (word, sense, _), doc in zip(chosen, docs, strict=True):
        i = next(token.i for token in doc if token.text == word)
        found.setdefault(word, []).append(make_context(doc, i, sense))
    return found


def cosines(a: Sequence[Context], b: Sequence[Context], layers: Sequence[int]) -> np.ndarray:
    """Cosines ``(n, m)`` of the contexts' vectors: of one layer, or of the mean of several.

    Without any layer, all are 0.
    """
    x, y = (np.stack([c.layers for c in group])[:, list(layers)].sum(axis=1) for group in (a, b))
    x = x / np.linalg.norm(x, axis=1, keepdims=True).clip(1e-12)
    y = y / np.linalg.norm(y, axis=1, keepdims=True).clip(1e-12)
    return x @ y.T


def accuracy(contexts: Sequence[Context], layers: Sequence[int]) -> np.ndarray:
    """For each context, whether the nearest other one has the same sense, ``(n,)``.

    Where several are equally near, the share of them with the same sense: the expected accuracy of
    a random choice. Without any layer, that is chance.
    """
    similarity = cosines(contexts, contexts, layers)
    np.fill_diagonal(similarity, -np.inf)
    nearest = similarity >= similarity.max(axis=1, keepdims=True) - TIE
    senses = np.array([c.sense for c in contexts])
    return (nearest & (senses[:, None] == senses)).sum(axis=1) / nearest.sum(axis=1)


def link_nearest(similarity: np.ndarray) -> tuple[np.ndarray, list[list[int]]]:
    """Group items by linking each to its nearest other one.

    Args:
        similarity: ``(n, n)``, n ≥ 2.

    Returns:
        The index of each item's nearest ``(n,)``, and the groups: the connected components, in the
        order of their first members.
    """
    nearest = np.where(np.eye(len(similarity)), -np.inf, similarity).argmax(axis=1)
    label = np.arange(len(nearest))
    for i, j in enumerate(nearest):
        label[label == label[j]] = label[i]
    groups: dict[int, list[int]] = {}
    for i, name in enumerate(label.tolist()):
        groups.setdefault(name, []).append(i)
    return nearest, list(groups.values())
