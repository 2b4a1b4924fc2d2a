"""The demo's sentences with ambiguous words, and how well vectors tell the senses apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..pipeline.similarity import unit
from ..senses.occurrences import Context, make_context, split_sentences
from ..text.segments import sentence_bounds
from .find_blanks import one_line

# Sentences with ambiguous words, written for the demo. A heading names a word and one of its
# senses; each sentence below it contains the word once, in exactly this form. All of them count in
# the demo's scores, and all were written before any model had read them: choosing among them by a
# model's vectors would be cheating.
SENTENCES = Path(__file__).with_name("demo_sentences.txt")
Found = dict[str, list[Context]]  # by word
TIE = 1e-5  # cosines that differ by less are equal


def read_sentences(path: Path = SENTENCES) -> list[tuple[str, str, str]]:
    """The built-in sentences, or those of a file like theirs, as ``(word, sense, sentence)``."""
    found = []
    for block in path.read_text(encoding="utf-8").split("# ")[1:]:
        heading, *sentences = filter(None, block.splitlines())
        word, sense = heading.split(": ")
        found += [(word, sense, sentence) for sentence in sentences]
    return found


def built_in_contexts(nlp: Language) -> tuple[list[Doc], Found]:
    """The built-in sentences, and the occurrences of their words; the ``row`` of each is its sense.

    Args:
        nlp: a pipeline whose elmo component stores layers.
    """
    rows, found = read_sentences(), defaultdict(list)
    docs = list(nlp.pipe(sentence for _, _, sentence in rows))
    for (word, sense, _), doc in zip(rows, docs, strict=True):
        i = next(token.i for token in doc if token.text == word)
        [tokens] = sentence_bounds(doc, "doc").tokens
        found[word].append(make_context(doc, tokens, i, sense))
    return docs, found


def text_contexts(nlp: Language, text: str) -> tuple[list[Doc], Found]:
    """The sentences of a text, and the occurrences of its words in lower case, the most frequent
    ones first; stop words are left out.

    Args:
        nlp: a pipeline whose elmo component stores layers.
        text: of any length.
    """
    docs = list(nlp.pipe(split_sentences(nlp.make_doc(one_line(text)))))
    found = defaultdict(list)
    for doc in docs:
        [words] = sentence_bounds(doc).tokens
        for token in doc:
            if token.is_alpha and not token.is_stop and len(token) > 1:
                found[token.lower_].append(make_context(doc, words, token.i))
    return docs, dict(sorted(found.items(), key=lambda item: -len(item[1])))


def layer_cosines(contexts: Sequence[Context], layer: int) -> np.ndarray:
    """Cosines ``(n, n)`` of one layer."""
    vectors = unit(np.stack([context.layers[layer] for context in contexts]))
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
