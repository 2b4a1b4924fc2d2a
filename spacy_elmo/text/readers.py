"""Raw texts as tokenized sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.vocab import Vocab

from ..util.workers import map_in_processes
from ..weights.native import Weights
from .corpus_reader import CorpusReader
from .docbin import docs_in
from .segments import chunks
from .shards import Paths, find_files, form
from .split_text import ZONE_CHARACTERS, ZONE_SIZE, sentences_of, split_text
from .texts import paragraphs_in

BY_RULES = "spacy.Tokenizer.v1"


class Texts(CorpusReader):
    """Raw texts, tokenized and split into sentences as they are read.

    Args:
        paths: files in the formats of `shards.FORMATS`, directories of them, or patterns.
        lang: code of their language.
        tokenizer: see `blank`.
        column: see `texts_in`.
    """

    def __init__(
        self, paths: Paths, lang: str, tokenizer: str | None = None, column: str | None = None
    ):
        self.paths, self.lang, self.tokenizer, self.column = paths, lang, tokenizer, column

    @cached_property
    def nlp(self) -> Language:
        return blank(self.lang, self.tokenizer)

    def files(self) -> list[Path]:
        return find_files(self.paths)

    def sentences_in(self, file: Path) -> Iterator[list[str]]:
        return tokenize_files(self.nlp, [file], n_process=1, column=self.column)

    def card(self) -> dict[str, str]:
        tokenizer = {} if self.tokenizer is None else {"tokenizer": self.tokenizer}
        return {"lang": self.lang, **tokenizer}


def blank(lang: str, tokenizer: str | None = None) -> Language:
    """An empty pipeline.

    Args:
        lang: code of its language.
        tokenizer: registered name of a tokenizer without settings; None for the language's own.
            `BY_RULES` is spaCy's rule-based one, for languages whose own needs another package.

    Raises:
        ValueError: there is no such language or tokenizer, or it needs another package.
    """
    config = {} if tokenizer is None else {"nlp": {"tokenizer": {"@tokenizers": tokenizer}}}
    try:
        return spacy.blank(lang, config=config)
    except ImportError as error:
        raise ValueError(
            f"{error} If the tokenizer of '{lang}' needs a package that is missing, install it or "
            f"use spaCy's rule-based one, '{BY_RULES}'."
        ) from error


def blank_pipeline(
    weights: Weights, lang: str | None = None, default: str | None = None
) -> Language:
    """A blank pipeline for the language and tokenizer that a biLM was trained with.

    Args:
        weights: whose card may name both.
        lang: code of another language, with its own tokenizer.
        default: language if neither the card nor ``lang`` names one.

    Raises:
        ValueError: the language is not known, spaCy does not support it, or its tokenizer needs
            another package.
    """
    meta = weights.card().meta
    if "lang" in meta and lang in (None, meta["lang"]):
        return blank(meta["lang"], meta.get("tokenizer"))
    lang = lang or default
    if lang is None:
        raise ValueError(
            f"The card of the weights '{weights.where}' does not name their language, which "
            f"decides how text is tokenized. Give it with --lang."
        )
    return blank(lang)


def tokenize_files(
    nlp: Language, texts: Iterable[Path], n_process: int, column: str | None = None
) -> Iterator[list[str]]:
    """The sentences of several texts.

    Args:
        nlp: its tokenizer is used; sentences are split as by the elmo component. Docs of a DocBin
            keep their tokens, and their sentences if they have any.
        texts: files in the formats of `shards.FORMATS`.
        n_process: processes that tokenize.
        column: see `texts_in`.

    Raises:
        ValueError: a text cannot be read.
    """
    for is_docs, files in groupby(texts, lambda text: form(text) == ".spacy"):
        if is_docs:
            yield from chain.from_iterable(_stored_sentences(nlp, file) for file in files)
            continue
        paragraphs = chain.from_iterable(paragraphs_in(file, column) for file in files)
        if n_process == 1:
            yield from split_text(nlp, paragraphs)
            continue
        tokenizer = nlp.config["nlp"]["tokenizer"]["@tokenizers"]
        parts = chunks(paragraphs, ZONE_CHARACTERS, ZONE_SIZE)
        tasks = ((nlp.lang, tokenizer, part) for part in parts)
        yield from chain.from_iterable(map_in_processes(_split_chunk, tasks, n_process))


def _split_chunk(lang: str, tokenizer: str, paragraphs: list[str]) -> list[list[str]]:
    """`split_text` in a worker, which makes its pipeline once."""
    return list(split_text(_worker_pipeline(lang, tokenizer), paragraphs))


_worker_pipeline = lru_cache(maxsize=1)(blank)


def _stored_sentences(nlp: Language, path: Path) -> Iterator[list[str]]:
    """The sentences of the Docs in a ``.spacy`` file, whose words no vocab keeps."""
    known: Any = nlp.vocab  # without its getters, no word would be punctuation or white space
    for doc in docs_in(path, Vocab(lex_attr_getters=known.lex_attr_getters)):
        yield from sentences_of(doc)
