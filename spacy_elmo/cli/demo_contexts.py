"""The demo's sentences with ambiguous words, and how well vectors tell the senses apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..pipeline.comparison import unit
from ..pipeline.segments import sentence_bounds
from ..senses import Context, make_context
from .find_blanks import around

# Sentences with ambiguous words, written for the demo. A heading names a word and one of its
# senses; each sentence below it contains the word once, in exactly this form. All of them count in
# the demo's scores, and all were written before any model had read them: choosing among them by a
# model's vectors would be cheating.
SENTENCES = Path(__file__).with_name("demo_sentences.txt")
# All senses of these are nouns: only the topic of the sentence tells them apart.
NOUNS = ("bank", "spring", "seal", "club", "letter", "crane", "plant")
TIE = 1e-5  # cosines that differ by less are equal


def read_sentences(path: Path = SENTENCES) -> list[tuple[str, str, str]]:
    """The built-in sentences, or those of a file like theirs, as ``(word, sense, sentence)``."""
    found = []
    word = sense = ""
    for line in filter(None, path.read_text(encoding="utf-8").splitlines()):
        if line.startswith("# "):
            word, sense = line[2:].split(": ")
        else:
            found.append((word, sense, line))
    return found


def built_in_contexts(nlp: Language, words: Container[str]) -> dict[str, list[Context]]:
    """The occurrences of some words in the built-in sentences; the ``row`` of each is its sense."""
    chosen = [row for row in read_sentences() if row[0] in words]
    found: dict[str, list[Context]] = {}
    docs = nlp.pipe(sentence for _, _, sentence in chosen)
    for (word, sense, _), doc in zip(chosen, docs, strict=True):
        i = next(token.i for token in doc if token.text == word)
        [tokens] = sentence_bounds(doc, "doc").tokens
        found.setdefault(word, []).append(make_context(doc, tokens, i, sense))
    return found


def contexts_by_word(docs: Iterable[Doc]) -> dict[str, list[Context]]:
    """The contexts of the words in Docs that are not stop words, in lower case."""
    found = defaultdict(list)
    for doc in docs:
        for sentence in sentence_bounds(doc).tokens:
            for token in (doc[i] for i in sentence):
                if token.is_alpha and not token.is_stop and len(token) > 1:
                    context = make_context(doc, sentence, token.i)
                    text = around(doc, token.i, 0, len(doc))  # with its blanks as written
                    found[token.lower_].append(context._replace(text=text))
    return found


def layer_cosines(contexts: Sequence[Context], layers: Sequence[int]) -> np.ndarray:
    """Cosines ``(n, n)`` of one layer, or of the mean of several; zeros without any."""
    vectors = unit(np.stack([c.layers for c in contexts])[:, list(layers)].sum(axis=1))
    return vectors @ vectors.T


def accuracy(contexts: Sequence[Context], similarity: np.ndarray) -> np.ndarray:
    """For each context, whether the most similar other one has the same sense, ``(n,)``.

    Where several are equally similar, the share of them with the same sense: the expected accuracy
    of a random choice.
    """
    others = np.where(np.eye(len(contexts)), -np.inf, similarity)
    nearest = others >= others.max(axis=1, keepdims=True) - TIE
    senses = np.array([c.row for c in contexts])
    return (nearest & (senses[:, None] == senses)).sum(axis=1) / nearest.sum(axis=1)
