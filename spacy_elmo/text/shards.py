"""Shards: files with a sentence per line and spaces between words."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from ..util.files import read_json, write_json
from .files import META, TEXTS, UNSUPPORTED, Paths, find_files, format_of, read_lines
from .readers import CorpusReader, split_at_spaces

META_KEYS = ("lang", "tokenizer")


class Shards(CorpusReader):
    """Reads shards, which `elmo tokenize` writes.

    Args:
        paths: see `find_files`.
    """

    def __init__(self, paths: Paths):
        self.paths = paths

    def files(self) -> list[Path]:
        files = find_files(self.paths)
        for file in files:
            if format_of(file) in (*TEXTS[1:], ".parquet", ".spacy", *UNSUPPORTED):
                raise ValueError(
                    f"'{file}' is not tokenized text, a sentence per line with spaces between "
                    f"words: make such files by `python -m spacy elmo tokenize`."
                )
        return files

    def sentences_in(self, file: Path) -> Iterator[list[str]]:
        return filter(None, map(str.split, read_lines(file)))

    def card(self) -> dict[str, str]:
        """The values on which all shards agree; a ValueError if a meta.json is damaged."""
        facts = []
        for meta in {file.parent / META for file in self.files()}:
            data = read_json(meta) if meta.exists() else {}
            facts.append({(key, data[key]) for key in META_KEYS if isinstance(data.get(key), str)})
        return dict(sorted(set.intersection(*facts)))


def write_shards(
    sentences: Iterable[Sequence[str]], out: Path, words_per_shard: int = 1_000_000
) -> tuple[int, int]:
    """Write sentences to numbered shards in a directory, in one pass.

    Args:
        sentences: lists of words. A word with white space in it becomes several.
        out: the directory, which is created if it is missing. With `atomic_directory` it appears
            whole or not at all.
        words_per_shard: a shard ends with the sentence that reaches this number of words.

    Returns:
        The numbers of sentences and words.
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
        directory: the directory of the shards.
        lang: the code of the language.
        tokenizer: the registered name of the tokenizer; None for the default of the language.
    """
    write_json(directory / META, {"lang": lang, "tokenizer": tokenizer})
