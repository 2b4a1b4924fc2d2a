"""Raw text to sentences, in memory that does not grow with the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from .segments import chunks, sentence_bounds
from .shards import split_at_spaces

ZONE_SIZE, ZONE_CHARACTERS = 2000, 2**20  # in memory together: paragraphs, and their size
KEPT_WORDS, MOST_CHARACTERS = 50_000, 128  # in a vocab that reads a corpus, and of a word


def memory_zone(nlp: Language, texts: Iterable[str]) -> AbstractContextManager[Any]:
    """A context whose Docs are not used after it: a corpus of any size is read in flat memory.

    The first `KEPT_WORDS` words, among which the frequent ones are, stay in the vocab: spaCy's
    tokenizer caches nothing in a memory zone, and is slow without its cache.

    Args:
        nlp: reads the texts; no other thread uses it.
        texts: to be read. Long words do not stay.
    """
    words = chain.from_iterable(map(str.split, texts))
    if len(nlp.vocab) > KEPT_WORDS or any(len(word) > MOST_CHARACTERS for word in words):
        return nlp.memory_zone()
    return nullcontext()


def sentences_of(doc: Doc) -> list[list[str]]:
    """The sentences of a Doc as lists of words; none is empty, and no word has white space."""
    return [split_at_spaces(doc[i].text for i in some) for some in sentence_bounds(doc).tokens]


def split_text(nlp: Language, paragraphs: Iterable[str]) -> Iterator[list[str]]:
    """Sentences of raw paragraphs, whitespace tokens left out."""
    nlp.max_length = 2**40  # nothing here grows with more than the paragraph itself
    texts = (text for text in paragraphs if text and not text.isspace())
    for chosen in chunks(texts, ZONE_CHARACTERS, ZONE_SIZE):
        with memory_zone(nlp, chosen):
            sentences = [words for doc in nlp.pipe(chosen) for words in sentences_of(doc)]
        yield from sentences
