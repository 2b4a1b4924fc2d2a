"""Text files, and sentence shards: one sentence per line, its words separated by spaces."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterable, Iterator, Sequence
from glob import glob
from itertools import chain
from pathlib import Path
from typing import IO, Any

from ..util.files import read_json, reading, write_json
from .corpus_reader import CorpusReader

META = "meta.json"  # describes the shards beside it
META_KEYS = ("lang", "tokenizer")
MAX_LINE = 10_000_000  # characters; spaCy itself refuses texts of more than a million
PACKERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
FORMATS = (
    "plain text (.txt), JSONL (.jsonl), CSV (.csv) or TSV (.tsv), also .gz or .xz, Parquet "
    "(.parquet) or Docs (.spacy)"
)
TEXTS = (".txt", ".jsonl", ".csv", ".tsv")
SUFFIXES = (
    *(text + packer for text in TEXTS for packer in ("", *PACKERS)), ".parquet", ".spacy",
)  # fmt: skip
UNREAD = (".json", ".ndjson", ".jsonlines", ".conllu", ".conll", ".xlsx")
Paths = str | Path | Sequence[str | Path]


def open_text(path: Path, encoding: str = "utf-8", newline: str | None = None) -> IO[str]:
    """Open UTF-8 text for reading, unpacked by its suffix; lines end in LF, CR LF or CR."""
    opener = PACKERS.get(path.suffix.lower(), open)
    file: IO[str] = opener(path, "rt", encoding=encoding, newline=newline)
    return file


def limited_lines(file: IO[str]) -> Iterator[str]:
    """The lines of an open file with their ends.

    Raises:
        ValueError: one is longer than `MAX_LINE`.
    """
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), ""), 1):
        if len(line.rstrip("\r\n")) > MAX_LINE:
            raise ValueError(f"line {number:,} has more than {MAX_LINE:,} characters")
        yield line


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a text file without their ends.

    Raises:
        ValueError: the file cannot be opened, is not UTF-8, its compression is damaged, or a line
            is longer than `MAX_LINE`; the message names it.
    """
    with reading("the UTF-8 text", path), open_text(path) as file:
        mark = "" if is_shard(path) else "\ufeff"  # joined files have it on other lines, too
        for line in limited_lines(file):
            yield line.rstrip("\n").removeprefix(mark)


def find_files(paths: Paths) -> list[Path]:
    """The files of one or several paths, those of each sorted by name: one file, the texts in a
    directory, or the files that match a pattern such as ``corpus/*.txt.gz``.

    Raises:
        ValueError: there are none at a path.
    """
    if not isinstance(paths, str | Path):
        return [file for path in paths for file in find_files(path)]
    path = Path(paths)
    found: Iterable[Path] = [path]
    if path.is_dir():
        named = ((file.name.lower(), file) for file in path.iterdir())
        found = (file for name, file in named if name.endswith(SUFFIXES) and name[0] != ".")
    elif not path.exists():
        found = map(Path, glob(str(path), recursive=True))
    files = sorted(file for file in found if file.is_file() and file.name != META)
    if not files:
        raise ValueError(f"No texts at '{path}': expected {FORMATS}.")
    return files


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


def form(file: Path) -> str:
    """The suffix of a file, before that of its compression, in lower case."""
    is_packed = file.suffix.lower() in PACKERS
    return (file.with_suffix("") if is_packed else file).suffix.lower()


def is_shard(file: Path) -> bool:
    """Tell if `write_shards` has written a file."""
    return file.name.startswith("shard-") and (file.parent / META).is_file()


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
