"""Interface of what reads the texts of a training; sentence shards: one sentence per line, its
words separated by spaces."""

from __future__ import annotations

import gzip
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from ..util.files import read_json, write_json
from .files import META, TEXTS, UNREAD, Paths, find_files, form, read_lines

META_KEYS = ("lang", "tokenizer")


class CorpusReader(ABC):
    """A text in files, read sentence by sentence.

    A function that a config registers under ``[corpora.train]`` or ``[corpora.dev]`` returns one.
    """

    @abstractmethod
    def files(self) -> list[Path]:
        """Its files, always in the same order.

        Raises:
            ValueError: there are none.
        """

    @abstractmethod
    def sentences_in(self, file: Path) -> Iterator[list[str]]:
        """The sentences of one file, as lists of words; none is empty.

        Raises:
            ValueError: the file cannot be read.
        """

    @abstractmethod
    def card(self) -> dict[str, str]:
        """Return the language of the text as ``lang``, and as ``tokenizer`` the registered name of
        its tokenizer, if that is not the language's own; for the card of the biLM."""

    def fingerprint(self) -> str:
        """Changes with the files, their order, names and sizes, and with the tokenizer; not with
        the directory that they are in."""
        files = [(file.name, file.stat().st_size) for file in self.files()]
        facts = json.dumps([type(self).__name__, sorted(self.card().items()), files])
        return hashlib.sha256(facts.encode()).hexdigest()

    def sentences(self) -> Iterator[list[str]]:
        """Yield the sentences of all files."""
        return (words for file in self.files() for words in self.sentences_in(file))


class Shards(CorpusReader):
    """Sentence shards, as `elmo tokenize` writes them.

    Args:
        paths: files, directories of them, or patterns such as ``corpus/*.txt.gz``.
    """

    def __init__(self, paths: Paths):
        self.paths = paths

    def files(self) -> list[Path]:
        files = find_files(self.paths)
        for file in files:
            if form(file) in (*TEXTS[1:], ".parquet", ".spacy", *UNREAD):
                raise ValueError(
                    f"'{file}' is not tokenized text, a sentence per line with spaces between "
                    f"words: make such files by `python -m spacy elmo tokenize`."
                )
        return files

    def sentences_in(self, file: Path) -> Iterator[list[str]]:
        return filter(None, map(str.split, read_lines(file)))

    def card(self) -> dict[str, str]:
        """What all of the shards agree on; a ValueError if a meta.json is damaged."""
        facts = []
        for meta in {file.parent / META for file in self.files()}:
            data = read_json(meta) if meta.exists() else {}
            facts.append({(key, data[key]) for key in META_KEYS if isinstance(data.get(key), str)})
        return dict(sorted(set.intersection(*facts)))


def split_at_spaces(words: Iterable[str]) -> list[str]:
    """Words, those with white space inside as several: a shard cannot contain them as one."""
    return [piece for word in words for piece in word.split()]


def write_shards(
    sentences: Iterable[Sequence[str]], out: Path, words_per_shard: int = 1_000_000
) -> tuple[int, int]:
    """Write sentences to numbered shards in a directory, in one pass, one open shard at a time.

    Args:
        sentences: lists of words; a word with white space inside becomes several.
        out: a directory, created if missing; use `atomic_directory` to have it appear whole or not
            at all.
        words_per_shard: a shard ends with the sentence that reaches this.

    Returns:
        Numbers of sentences and words written.
    """
    out.mkdir(parents=True, exist_ok=True)
    n_sentences = n_words = 0
    rest = filter(None, map(split_at_spaces, sentences))
    for n_shards, first in enumerate(rest):
        in_shard = 0
        path = out / f"shard-{n_shards:05d}.txt.gz"
        with gzip.open(path, "wt", encoding="utf-8", newline="\n") as file:
            for words in chain([first], rest):
                file.write(" ".join(words) + "\n")
                n_sentences += 1
                in_shard += len(words)
                if in_shard >= words_per_shard:
                    break
        n_words += in_shard
    return n_sentences, n_words


def write_meta(directory: Path, lang: str, tokenizer: str | None = None) -> None:
    """Write the language and the tokenizer of shards beside them.

    Args:
        directory: of the shards.
        lang: code of the language.
        tokenizer: registered name of the tokenizer, None for the language's own.
    """
    write_json(directory / META, {"lang": lang, "tokenizer": tokenizer})
