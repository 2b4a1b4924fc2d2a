"""Finds the files of texts, tells their formats apart, and reads lines."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterable, Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import IO, Any

from ..util.files import naming_errors

META = "meta.json"  # describes the shards beside it
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
    """Open UTF-8 text for reading. Its suffix tells how it is compressed."""
    opener = PACKERS.get(path.suffix.lower(), open)
    file: IO[str] = opener(path, "rt", encoding=encoding, newline=newline)
    return file


def limited_lines(file: IO[str]) -> Iterator[str]:
    """Yield the lines of an open file, with their ends.

    Raises:
        ValueError: a line is longer than `MAX_LINE`.
    """
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), ""), 1):
        if len(line.rstrip("\r\n")) > MAX_LINE:
            raise ValueError(f"line {number:,} has more than {MAX_LINE:,} characters")
        yield line


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file, without their ends (LF, CR LF or CR).

    Raises:
        ValueError: the file cannot be opened, is damaged or not UTF-8, or a line is longer than
            `MAX_LINE`.
    """
    with naming_errors("the UTF-8 text", path), open_text(path) as file:
        mark = "" if is_shard(path) else "\ufeff"  # a joined file has it on later lines, too
        for line in limited_lines(file):
            yield line.rstrip("\n").removeprefix(mark)


def find_files(paths: Paths) -> list[Path]:
    """Find the files of texts.

    Args:
        paths: a file, a directory, a pattern such as ``corpus/*.txt.gz``, or a list of these.

    Returns:
        The files of each path, sorted by name.

    Raises:
        ValueError: a path has no texts.
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


def form(file: Path) -> str:
    """The suffix that tells a file's format, without that of its compression, in lower case."""
    is_packed = file.suffix.lower() in PACKERS
    return (file.with_suffix("") if is_packed else file).suffix.lower()


def is_shard(file: Path) -> bool:
    """Tell if a file is a shard that `write_shards` has written."""
    return file.name.startswith("shard-") and (file.parent / META).is_file()
