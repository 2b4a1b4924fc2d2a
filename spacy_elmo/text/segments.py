"""Splits a Doc into the sentences and windows that the biLM reads."""

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
        words: ``(n_words,)``, the token index of each word.
        bounds: the start and the end of each sentence in ``words``.
    """

    words: np.ndarray
    bounds: list[tuple[int, int]]

    @property
    def tokens(self) -> list[list[int]]:
        """For each sentence, the token indices of its words."""
        return [self.words[start:end].tolist() for start, end in self.bounds]


def sentence_bounds(doc: Doc, segments: str = "auto") -> Sentences:
    """Find the words of a Doc and the sentences that they form; the Doc is not changed.

    Whitespace tokens are not words, and sentences without words are left out. Each word is in one
    sentence, whatever ``doc.user_hooks["sents"]`` yields: a sentence ends where the next one
    starts, and the first sentence has the words before it, too.

    Args:
        doc: any Doc.
        segments: ``"sents"`` for ``doc.sents``; ``"doc"`` for the whole Doc as one; ``"auto"`` for
            ``doc.sents`` if they are set, otherwise sentences that end after final punctuation, by
            the sentencizer's characters and rule.

    Raises:
        ValueError: ``segments`` is ``"sents"``, and the Doc has no sentence boundaries.
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
    """Where sentences start: after a run of punctuation marks, one of which is final."""
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
    """Yield items in order, in lists.

    Args:
        items: Docs, parts of Docs, texts or other items.
        limit: a list ends with the item with which its size reaches this.
        most: the largest number of items in a list.
        size: the size of an item.
    """
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
    """A sentence, or a part of a long one: what the biLM reads at once.

    Attributes:
        words: the words that are read.
        used: the words among them whose vectors are taken from here.
        rows: the tokens of these in the `DocPart`; a slice, which is faster, if there are no gaps.
    """

    words: list[str]
    used: slice
    rows: slice | np.ndarray


@dataclass(frozen=True)
class DocPart:
    """Consecutive tokens of a Doc; all of them, unless the Doc is long.

    Attributes:
        doc: the Doc.
        start, end: where the tokens start and end.
        windows: the windows that give their vectors.
        sentences: the sentences of the whole Doc.
    """

    doc: Doc
    start: int
    end: int
    windows: list[Window]
    sentences: Sentences

    def __len__(self) -> int:
        return self.end - self.start


def doc_parts(doc: Doc, segments: str, max_words: int, n_tokens: int) -> list[DocPart]:
    """Split a Doc into parts, and these into windows.

    Each word takes its vectors from exactly one window, with context on both sides of the word.

    Args:
        doc: any Doc.
        segments: see `sentence_bounds`.
        max_words: the largest number of words in a window.
        n_tokens: a part ends with the window that reaches this number of tokens.

    Returns:
        The parts of the Doc, at least one.
    """
    sentences = sentence_bounds(doc, segments)
    tokens, bounds = sentences
    orths = doc.to_array([ORTH])[tokens].tolist()
    texts = {orth: doc.vocab.strings[orth] for orth in set(orths)}
    words = [texts[orth] for orth in orths]
    part_start = 0
    part: list[Window] = []
    parts: list[DocPart] = []
    for start, end in bounds:
        for (first, last), (used, used_end) in windows(end - start, max_words):
            rows: Any = tokens[start + used : start + used_end] - part_start
            part_end = part_start + int(rows[-1]) + 1
            if rows[-1] - rows[0] < len(rows):
                rows = slice(int(rows[0]), part_end - part_start)
            taken = slice(used - first, used_end - first)
            part.append(Window(words[start + first : start + last], taken, rows))
            if part_end - part_start >= n_tokens:
                parts.append(DocPart(doc, part_start, part_end, part, sentences))
                part_start, part = part_end, []
    # Whitespace at the end has no windows, and may fill parts. An empty Doc has one part.
    for start in range(part_start, max(len(doc), 1), n_tokens):
        parts.append(DocPart(doc, start, min(start + n_tokens, len(doc)), part, sentences))
        part = []
    return parts


def windows(n_words: int, max_words: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Split a sentence into windows of at most ``max_words`` words.

    Neighbouring windows overlap by a quarter of their length (at most 100 words), the last two by
    more. A word in two windows takes its vectors from the one in which it is farther from the edge.

    Returns:
        The start and the end of each window, and of the words that take their vectors from it.
    """
    if n_words <= max_words:
        return [((0, n_words), (0, n_words))]
    overlap = min(100, max_words // 4)
    # The last window begins earlier, so that it is not short.
    starts = [*range(0, n_words - max_words, max_words - overlap), n_words - max_words]
    middles = [(start + max_words + after) // 2 for start, after in pairwise(starts)]
    bounds = [(start, start + max_words) for start in starts]
    return list(zip(bounds, pairwise([0, *middles, n_words]), strict=True))
