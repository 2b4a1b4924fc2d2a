"""Sentences and windows of a Doc, which the biLM reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from spacy.attrs import IS_PUNCT, IS_SPACE, ORTH
from spacy.pipeline.sentencizer import Sentencizer
from spacy.strings import get_string_id
from spacy.tokens import Doc

Item = TypeVar("Item")
SEGMENTS = ("auto", "sents", "doc")
FINAL_MARKS = frozenset(map(get_string_id, Sentencizer.default_punct_chars))


class Sentences(NamedTuple):
    """The words of a Doc, and the sentences that they form.

    Attributes:
        words: their token indices, ``(n_words,)``.
        bounds: each sentence's start and end in ``words``.
    """

    words: np.ndarray
    bounds: list[tuple[int, int]]

    @property
    def tokens(self) -> list[list[int]]:
        """The token indices of each sentence's words."""
        return [self.words[start:end].tolist() for start, end in self.bounds]


def sentence_bounds(doc: Doc, segments: str = "auto") -> Sentences:
    """A Doc's words and the sentences they form; nothing is written to the Doc.

    Whitespace tokens are not words, and sentences of nothing else vanish. Every word is in one
    sentence, whatever ``doc.user_hooks["sents"]`` yields: a sentence ends where the next one
    starts, and the first one has the words before it, too.

    Args:
        doc: any Doc.
        segments: ``"sents"``, the Doc's own sentences; ``"doc"``, the whole Doc as one;
            ``"auto"``, its own sentences if it has any, else split after sentence-final
            punctuation (the sentencizer's set and rule).

    Raises:
        ValueError: ``"sents"``, and the Doc has no sentence boundaries.
    """
    attributes = doc.to_array([ORTH, IS_PUNCT, IS_SPACE]).reshape(len(doc), 3)
    words = np.flatnonzero(attributes[:, 2] == 0)
    has_sentences = "sents" in doc.user_hooks or doc.has_annotation("SENT_START")
    if segments == "sents" and not has_sentences and len(words):
        raise ValueError(
            'segments = "sents" needs sentence boundaries, but the Doc has none. Add a '
            "'sentencizer', 'senter' or 'parser' before the component, or use "
            'segments = "auto".'
        )
    starts: list[int] = []
    if segments != "doc" and has_sentences:
        starts = np.searchsorted(words, [sent.start for sent in doc.sents]).tolist()
    elif segments != "doc":
        starts = _starts_by_punctuation(*attributes[words, :2].T.tolist())
    return Sentences(words, list(pairwise(sorted({0, *starts, len(words)}))))


def _starts_by_punctuation(orths: list[int], is_punct: list[int]) -> list[int]:
    """Where the next sentence starts: after a run of punctuation with a final mark in it."""
    starts: list[int] = []
    has_ended = False
    for i, (orth, may_follow) in enumerate(zip(orths, is_punct, strict=True)):
        if orth in FINAL_MARKS:
            has_ended = True
        elif has_ended and not may_follow:
            starts.append(i)
            has_ended = False
    return starts


def chunks(
    items: Iterable[Item], limit: float, most: float, size: Callable[[Any], int] = len
) -> Iterator[list[Item]]:
    """Docs, `DocPart`s or other items in order, in lists of ``most``, or that end with the one that
    reaches a limit of size: by default the tokens of a Doc, or the characters of a text."""
    chunk: list[Item] = []
    total = 0
    for item in items:
        chunk.append(item)
        total += size(item)
        if total >= limit or len(chunk) >= most:
            yield chunk
            chunk, total = [], 0
    if chunk:
        yield chunk


class Window(NamedTuple):
    """A sentence, or a window of a long one: what the biLM reads at once.

    Attributes:
        words: what it reads.
        used: those of them that get their vectors from here.
        rows: their tokens in the `DocPart`; a slice, which is faster, if these have no gaps.
    """

    words: list[str]
    used: slice
    rows: slice | np.ndarray


@dataclass(frozen=True)
class DocPart:
    """Consecutive tokens of a Doc, all of them unless it is long.

    Attributes:
        doc: the Doc.
        start, end: of the tokens.
        windows: what the biLM reads for their vectors.
        sentences: of the whole Doc.
    """

    doc: Doc
    start: int
    end: int
    windows: list[Window]
    sentences: Sentences

    def __len__(self) -> int:
        return self.end - self.start


def doc_parts(doc: Doc, segments: str, max_words: int, n_tokens: int) -> Iterator[DocPart]:
    """Split a Doc into sentences, long ones into overlapping windows.

    Every word gets its vectors from exactly one window, one with context on both sides of it.

    Args:
        doc: any Doc.
        segments: see `sentence_bounds`.
        max_words: words of the longest window.
        n_tokens: a part ends with the window that reaches as many, or with the Doc.

    Yields:
        One part or more, which tile the Doc.
    """
    sentences = sentence_bounds(doc, segments)
    tokens, bounds = sentences
    orths = doc.to_array([ORTH])[tokens].tolist()
    texts = {orth: doc.vocab.strings[orth] for orth in set(orths)}
    words = [texts[orth] for orth in orths]
    part_start = 0
    part: list[Window] = []
    for start, end in bounds:
        for (first, last), (used, used_end) in windows(end - start, max_words):
            rows: Any = tokens[start + used : start + used_end] - part_start
            part_end = part_start + int(rows[-1]) + 1
            if rows[-1] - rows[0] < len(rows):
                rows = slice(int(rows[0]), part_end - part_start)
            own = slice(used - first, used_end - first)
            part.append(Window(words[start + first : start + last], own, rows))
            if part_end - part_start >= n_tokens:
                yield DocPart(doc, part_start, part_end, part, sentences)
                part_start, part = part_end, []
    # Whitespace has no windows, however much of it there is at the end. An empty Doc has one part.
    for start in range(part_start, max(len(doc), 1), n_tokens):
        yield DocPart(doc, start, min(start + n_tokens, len(doc)), part, sentences)
        part = []


def windows(n_words: int, max_words: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Split a sentence into windows of at most ``max_words`` words.

    Neighbouring windows overlap by a quarter of their length (100 words at most), the last two by
    more. Each word of the overlap gets its vectors from the window in which it is farther from
    the edge.

    Yields:
        The start and end of a window, and of the words in it that get their vectors from it; the
        latter tile the sentence.
    """
    if n_words <= max_words:
        yield (0, n_words), (0, n_words)
        return
    overlap = min(100, max_words // 4)
    # The last window reaches back, so that it is not a short one.
    starts = [*range(0, n_words - max_words, max_words - overlap), n_words - max_words]
    middles = [(start + max_words + after) // 2 for start, after in pairwise(starts)]
    for start, used in zip(starts, pairwise([0, *middles, n_words]), strict=True):
        yield (start, start + max_words), used
