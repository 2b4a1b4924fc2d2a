"""Corpus readers: raw texts are tokenized and split into sentences, in bounded memory."""

from __future__ import annotations

import hashlib
import json
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..util.files import naming_errors
from ..util.workers import map_in_processes
from ..weights.native import Weights
from .files import Paths, find_files, format_of, paragraphs_in
from .segments import chunks, sentence_bounds

BY_RULES = "spacy.Tokenizer.v1"
ZONE_SIZE, ZONE_CHARACTERS = 2000, 2**20  # paragraphs in memory, and their characters
KEPT_WORDS, MOST_CHARACTERS = 50_000, 128  # words that stay in a vocab, and characters of a word
MAX_UNPACKED, MAX_PACKED_RATIO = 2**28, 200  # repeated Docs are packed 130 times smaller


class CorpusReader(ABC):
    """Reads a text in files, sentence by sentence.

    A registered function that [corpora.train] or [corpora.dev] in a config names returns one.
    """

    @abstractmethod
    def files(self) -> list[Path]:
        """The files of the text, always in the same order.

        Raises:
            ValueError: there are no files.
        """

    @abstractmethod
    def sentences_in(self, file: Path) -> Iterator[list[str]]:
        """Yield the sentences in a file as lists of words, without empty ones.

        Raises:
            ValueError: the file cannot be read.
        """

    @abstractmethod
    def card(self) -> dict[str, str]:
        """The language of the text as ``lang``, and the registered name of its tokenizer as
        ``tokenizer`` if it is not the default of the language. The card of the biLM gets both."""

    def fingerprint(self) -> str:
        """A hash of the files' names, sizes and order, and of the tokenizer. The directory of the
        files does not matter."""
        files = [(file.name, file.stat().st_size) for file in self.files()]
        facts = json.dumps([type(self).__name__, sorted(self.card().items()), files])
        return hashlib.sha256(facts.encode()).hexdigest()

    def sentences(self) -> Iterator[list[str]]:
        """Yield the sentences in all files."""
        return (words for file in self.files() for words in self.sentences_in(file))


class Texts(CorpusReader):
    """Reads raw texts: tokenizes them and splits them into sentences.

    Args:
        paths: files in `files.FORMATS`, see `find_files`.
        lang: the code of their language.
        tokenizer: see `blank`.
        column: see `files.texts_in`.
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
    """A blank pipeline.

    Args:
        lang: the code of its language.
        tokenizer: the registered name of a tokenizer without settings; None for the default of the
            language. If that needs a missing package, give spaCy's rule-based one, `BY_RULES`.

    Raises:
        ValueError: there is no such language or tokenizer, or it needs another package.
    """
    config = {} if tokenizer is None else {"nlp": {"tokenizer": {"@tokenizers": tokenizer}}}
    try:
        return spacy.blank(lang, config=config)
    except ImportError as error:
        raise ValueError(
            f"{str(error).rstrip('.')}. If the tokenizer of '{lang}' needs a package that is "
            f"missing, install it or use spaCy's rule-based one, '{BY_RULES}'."
        ) from error


def blank_pipeline(
    weights: Weights, lang: str | None = None, default: str | None = None
) -> Language:
    """A blank pipeline with the language and the tokenizer that a biLM was trained with.

    Args:
        weights: the weights, whose card may name both.
        lang: the code of another language, whose default tokenizer is used.
        default: the language if neither the card nor ``lang`` names one.

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


def memory_zone(nlp: Language, texts: Iterable[str]) -> AbstractContextManager[Any]:
    """A context for Docs that are not used after it, so that memory does not grow with a corpus.

    In a memory zone spaCy's tokenizer caches nothing, and is slow. So the first `KEPT_WORDS` words,
    which include the frequent ones, are read outside of a zone and stay in the vocab.

    Args:
        nlp: the pipeline that reads the texts; no other thread uses it.
        texts: the texts. Long words never stay.
    """
    words = chain.from_iterable(map(str.split, texts))
    if len(nlp.vocab) > KEPT_WORDS or any(len(word) > MOST_CHARACTERS for word in words):
        return nlp.memory_zone()
    return nullcontext()


def split_at_spaces(words: Iterable[str]) -> list[str]:
    """Split words with white space in them, which a shard could not have."""
    return [piece for word in words for piece in word.split()]


def sentences_of(doc: Doc) -> list[list[str]]:
    """The sentences of a Doc as lists of words, without empty ones. No word has white space."""
    return [split_at_spaces(doc[i].text for i in tokens) for tokens in sentence_bounds(doc).tokens]


def split_text(nlp: Language, paragraphs: Iterable[str]) -> Iterator[list[str]]:
    """Yield the sentences in raw paragraphs, without whitespace tokens."""
    nlp.max_length = 2**40  # memory grows with a paragraph only
    texts = (text for text in paragraphs if text and not text.isspace())
    for chosen in chunks(texts, ZONE_CHARACTERS, ZONE_SIZE):
        with memory_zone(nlp, chosen):
            sentences = [words for doc in nlp.pipe(chosen) for words in sentences_of(doc)]
        yield from sentences


def tokenize_files(
    nlp: Language, texts: Iterable[Path], n_process: int, column: str | None = None
) -> Iterator[list[str]]:
    """Yield the sentences in several texts, split as the elmo component splits them.

    Args:
        nlp: the pipeline whose tokenizer is used. Docs in a DocBin keep their tokens, and their
            sentences if they have any.
        texts: files in `files.FORMATS`.
        n_process: the number of processes that tokenize.
        column: see `files.texts_in`.

    Raises:
        ValueError: a text cannot be read.
    """
    for is_docs, files in groupby(texts, lambda text: format_of(text) == ".spacy"):
        if is_docs:
            known: Any = nlp.vocab  # without its getters, no word is punctuation or white space
            for file in files:  # whose words do not stay in a vocab
                for doc in docs_in(file, Vocab(lex_attr_getters=known.lex_attr_getters)):
                    yield from sentences_of(doc)
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
    """Call `split_text` in a worker process, which makes its pipeline once."""
    return list(split_text(_worker_pipeline(lang, tokenizer), paragraphs))


_worker_pipeline = lru_cache(maxsize=1)(blank)


class StoredDoc(NamedTuple):
    """A Doc on its way to another process.

    Attributes:
        text: the text.
        data: the bytes of the Doc, without its tensor.
    """

    text: str
    data: bytes


def docs_in(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Yield the Docs in a ``.spacy`` file.

    Raises:
        ValueError: the file cannot be read, or a Doc is damaged.
    """
    # For another file, spaCy raises any of these.
    with naming_errors("the DocBin", path, TypeError, AttributeError, IndexError):
        data = path.read_bytes()
        most = MAX_UNPACKED + MAX_PACKED_RATIO * len(data)
        unpacker, size = zlib.decompressobj(), 0
        for start in range(0, len(data), 2**14):  # a part at a time, to bound the memory
            size += len(unpacker.decompress(data[start : start + 2**14]))
            if size > most:
                raise ValueError(f"it unpacks to more than {most:,} bytes")
        yield from DocBin().from_bytes(data).get_docs(vocab)


def stored_docs_in(path: Path) -> Iterator[StoredDoc]:
    """Yield the Docs in a ``.spacy`` file as bytes, see `docs_in`. Words have no flags, such as
    ``is_punct``, until the vocab of a pipeline reads them."""
    for doc in docs_in(path, Vocab()):
        yield StoredDoc(doc.text, doc.to_bytes(exclude=["tensor"]))
