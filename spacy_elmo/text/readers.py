"""Raw texts as tokenized sentences: plain text, JSONL, and spaCy's DocBin."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import chain, groupby
from math import inf
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..util.files import reading
from ..util.workers import map_in_processes
from ..weights.native import Weights
from .corpus_reader import CorpusReader
from .segments import chunks, sentence_bounds
from .shards import (
    COMPRESSIONS,
    JSONL,
    NO_TEXT,
    Paths,
    find_files,
    has_suffix,
    read_lines,
    split_at_spaces,
)
from .split_text import ZONE_CHARACTERS, ZONE_SIZE, split_text

FORMATS = "plain text (.txt), JSONL (.jsonl), either also .gz, .xz or .zst, or .spacy"
TEXT_SUFFIXES = (
    ".spacy",
    *(form + packing for form in (".txt", *JSONL) for packing in COMPRESSIONS),
)
BY_RULES = "spacy.Tokenizer.v1"
COLUMNS = ("tokens", "spaces", "cats", "span_groups", "flags", "user_data")  # of a DocBin
MAX_UNPACKED, MAX_PACKED_RATIO = 2**28, 200  # repeated Docs pack to 1 in 130


class Texts(CorpusReader):
    """Raw texts, tokenized and split into sentences as they are read.

    Args:
        paths: files in the formats of `FORMATS`, directories of them, or patterns.
        lang: code of their language.
        tokenizer: see `blank`.
    """

    def __init__(self, paths: Paths, lang: str, tokenizer: str | None = None):
        self.paths, self.lang, self.tokenizer = paths, lang, tokenizer

    @cached_property
    def nlp(self) -> Language:
        return blank(self.lang, self.tokenizer)

    def files(self) -> list[Path]:
        return find_files(self.paths, TEXT_SUFFIXES, "texts", FORMATS)

    def read(self, file: Path) -> Iterator[list[str]]:
        return tokenize_files(self.nlp, [file], n_process=1)

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
        text = str(error)
        if tokenizer is None and find_spec(f"spacy.lang.{lang}"):  # a package is missing
            text = (
                f"The tokenizer of the language '{lang}' needs a package that is missing: {text} "
                f"Or use spaCy's rule-based one, '{BY_RULES}'."
            )
        raise ValueError(text) from error


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


def tokenize_files(nlp: Language, texts: Iterable[Path], n_process: int) -> Iterator[list[str]]:
    """The sentences of several texts.

    Args:
        nlp: its tokenizer is used; sentences are split as by the elmo component. Docs of a DocBin
            keep their tokens, and their sentences if they have any.
        texts: files in the formats of `FORMATS`.
        n_process: processes that tokenize.

    Raises:
        ValueError: a text cannot be read.
    """
    for is_docs, files in groupby(texts, lambda text: text.suffix == ".spacy"):
        if is_docs:
            yield from chain.from_iterable(read_docs(nlp, file) for file in files)
            continue
        paragraphs = chain.from_iterable(map(read_paragraphs, files))
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


def read_paragraphs(path: Path) -> Iterator[str]:
    """The paragraphs of a file: its lines, or those of the ``"text"`` of each line of JSON.

    Raises:
        ValueError: the file cannot be read, or a line is not such JSON.
    """
    texts = read_texts(path)
    return chain.from_iterable(map(str.splitlines, texts)) if _is_jsonl(path) else texts


def _is_jsonl(path: Path) -> bool:
    if has_suffix(path, [".json"]):
        raise ValueError(f"{path}: JSON is read line by line; make it a .jsonl file.")
    if has_suffix(path, NO_TEXT):
        raise ValueError(f"'{path}' is not text: expected {FORMATS}.")
    return has_suffix(path, JSONL)


def read_texts(path: Path) -> Iterator[str]:
    """The lines of a text file, with either line ending, or the ``"text"`` of each line of JSON.

    Raises:
        ValueError: the file cannot be read, or a line is not such JSON.
    """
    is_jsonl = _is_jsonl(path)
    if not is_jsonl:
        yield from (line.removesuffix("\r") for line in read_lines(path))
        return
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            text = json.loads(line)["text"]
            text.encode()  # which half of a surrogate pair cannot be: it is not a character
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(
                f'Line {number} of {path} is not JSON with a text, as in {{"text": "…"}}: {error}'
            ) from error
        yield text


def read_docs(nlp: Language, path: Path) -> Iterator[list[str]]:
    """The sentences of the Docs in a DocBin.

    Raises:
        ValueError: the file cannot be read.
    """
    for stored in read_docbin(path):
        with nlp.memory_zone():
            sentences = []
            for doc in stored.read(nlp.vocab):
                for tokens in sentence_bounds(doc).tokens:
                    sentences.append(split_at_spaces(doc[i].text for i in tokens))
        yield from sentences


class StoredDocs(NamedTuple):
    """Docs of a ``.spacy`` file, all or some, which are not made yet.

    Attributes:
        file: its path.
        docs: the stored Docs.
    """

    file: Path
    docs: DocBin

    def read(self, vocab: Vocab) -> Iterator[Doc]:
        """The Docs, one after another; a ValueError if one is damaged."""
        with reading("the DocBin", self.file):
            yield from self.docs.get_docs(vocab)


def read_docbin(path: Path, n_tokens: float = inf, n_docs: float = inf) -> Iterator[StoredDocs]:
    """The Docs of a ``.spacy`` file, in parts.

    Args:
        path: of the file.
        n_tokens: a part ends with the Doc that reaches as many.
        n_docs: the most Docs of a part.

    Raises:
        ValueError: it cannot be read.
    """
    with reading("the DocBin", path):
        _check_unpacked_size(path)
        docs = DocBin().from_disk(path)
        for part in chunks(range(len(docs)), n_tokens, n_docs, lambda i: len(docs.tokens[i])):
            some = DocBin(attrs=[], store_user_data=True)
            some.attrs, some.strings = docs.attrs, docs.strings
            for name in COLUMNS:
                setattr(some, name, getattr(docs, name)[part[0] : part[-1] + 1])
            yield StoredDocs(path, some)


def _check_unpacked_size(path: Path) -> None:
    """Raise a ValueError if a ``.spacy`` file unpacks to far more than its Docs can need."""
    most = MAX_UNPACKED + MAX_PACKED_RATIO * path.stat().st_size
    unpacker, size = zlib.decompressobj(), 0
    with path.open("rb") as file:
        while chunk := file.read(2**14):
            size += len(unpacker.decompress(chunk))
            if size > most:
                raise ValueError(f"it unpacks to more than {most:,} bytes")
            if unpacker.unused_data:
                raise ValueError("it has more after its end")
