"""Raw text to sentences, in memory that does not grow with the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any

from spacy.language import Language

from .segments import chunks, sentence_bounds

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


def split_text(nlp: Language, paragraphs: Iterable[str]) -> Iterator[list[str]]:
    """Sentences of raw paragraphs, whitespace tokens left out."""
    nlp.max_length = 2**40  # nothing here grows with more than the paragraph itself
    texts = (text for text in paragraphs if text and not text.isspace())
    for chosen in chunks(texts, ZONE_CHARACTERS, ZONE_SIZE):
        with memory_zone(nlp, chosen):
            sentences = []
            for doc in nlp.pipe(chosen):
                sentences += [[doc[i].text for i in some] for some in sentence_bounds(doc).tokens]
        yield from sentences
