"""Finds the files of texts, tells their formats apart, and reads lines and tables."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from glob import glob
from itertools import chain
from pathlib import Path
from typing import IO, Any

from ..util.files import naming_errors
from ..util.optional_imports import import_extra
from ..util.settings import shorten

META = "meta.json"  # describes the shards beside it
MAX_LINE = 10_000_000  # characters; spaCy itself refuses texts of more than a million
PACKERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
FORMATS = (
    "plain text (.txt), JSONL (.jsonl), CSV (.csv) or TSV (.tsv), also .gz or .xz, Parquet "
    "(.parquet) or Docs (.spacy)"
)
TEXTS = (".txt", ".jsonl", ".csv", ".tsv")
SUFFIXES = (*(text + end for text in TEXTS for end in ("", *PACKERS)), ".parquet", ".spacy")
UNSUPPORTED = (".json", ".ndjson", ".jsonlines", ".conllu", ".conll", ".xlsx")
Paths = str | Path | Sequence[str | Path]
LINE_END = re.compile("\r\n|\r|\n")
BATCH_ROWS = 64  # rows of Parquet in memory
Rows = Iterator[tuple[int, Any]]  # the number of the line or row, and the value of the column


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
    candidates: Iterable[Path] = [path]
    if path.is_dir():
        named = ((file.name.lower(), file) for file in path.iterdir())
        candidates = (file for name, file in named if name.endswith(SUFFIXES) and name[0] != ".")
    elif not path.exists():
        candidates = [Path(found) for found in glob(str(path), recursive=True)]
    files = sorted(file for file in candidates if file.is_file() and file.name != META)
    if not files:
        what = f"expected {FORMATS}" if candidates else "there is no such file or directory"
        raise ValueError(f"No texts at '{path}': {what}.")
    return files


def format_of(file: Path) -> str:
    """The suffix that tells a file's format, without that of its compression, in lower case."""
    return (file.with_suffix("") if file.suffix.lower() in PACKERS else file).suffix.lower()


def is_shard(file: Path) -> bool:
    """Tell if a file is a shard that `write_shards` has written."""
    return file.name.startswith("shard-") and (file.parent / META).is_file()


def texts_in(path: Path, column: str | None = None) -> Iterator[str]:
    """Yield the texts in a file.

    In a table, a null is an empty text; so is NaN in JSONL, which Python writes for a null. CSV and
    TSV are quoted as by Python's `csv` and spreadsheets, and their first line has the names of
    columns.

    Args:
        path: the file, whose suffix tells the format.
        column: the column of texts in a table, in JSONL the key; None for ``"text"``.

    Raises:
        ValueError: the file cannot be read, has another format, or has no such column.
    """
    if format_of(path) in (".spacy", *UNSUPPORTED):
        raise ValueError(
            f"'{path}' is not text: expected {FORMATS}. pandas makes JSONL of a table by "
            f"frame.to_json('texts.jsonl', orient='records', lines=True)."
        )
    if format_of(path) in TABLES:
        return _texts_in_table(path, column or "text")
    return read_lines(path)


def paragraphs_in(path: Path, column: str | None = None) -> Iterator[str]:
    """Yield the lines of each text in a file, see `texts_in`. Lines end in LF, CR LF or CR."""
    return chain.from_iterable(map(LINE_END.split, texts_in(path, column)))


def _texts_in_table(path: Path, column: str) -> Iterator[str]:
    read, unit = TABLES[format_of(path)]
    for number, value in read(path, column):
        try:
            text = check_text(value)
            text.encode()  # an error for half of a surrogate pair, which is no character
            if len(text) > MAX_LINE:
                raise ValueError(f"the text has more than {MAX_LINE:,} characters")
        except ValueError as error:
            raise ValueError(f"{unit} {number} of {path}: {error}.") from error
        yield text


def check_text(text: Any) -> str:
    """A text from a file or a user. A null (None, NaN, pandas' ``<NA>``) is an empty text.

    Raises:
        ValueError: the argument is something else.
    """
    is_nan = isinstance(text, float) and text != text
    if text is None or is_nan or type(text).__name__ == "NAType":
        return ""
    if not isinstance(text, str):
        raise ValueError(f"expected a text, found {shorten(text)}")
    return str(text)  # spaCy takes no strings of NumPy


def _json_rows(path: Path, column: str) -> Rows:
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        place = f"Line {number} of {path}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{place} is not JSON: {error}") from error
        if not isinstance(record, dict):
            example = f'{{{json.dumps(column)}: "…"}}'
            raise ValueError(f"{place} is not a JSON object, as in {example}: {shorten(record)}")
        _check_column(column, list(record), f"{place}: ")
        yield number, record[column]


def _csv_rows(path: Path, column: str, delimiter: str = ",") -> Rows:
    csv.field_size_limit(MAX_LINE)
    with (
        naming_errors("the table", path),
        open_text(path, encoding="utf-8-sig", newline="") as file,  # line ends in texts stay
    ):
        reader = csv.reader(limited_lines(file), delimiter=delimiter, strict=True)
        try:
            names = next(reader, [])
            _check_column(column, names)
            place = names.index(column)
            for values in filter(None, reader):  # without empty lines
                if len(values) != len(names):
                    raise csv.Error(f"{len(values)} fields, where there are {len(names)} columns")
                yield reader.line_num, values[place]
        except csv.Error as error:
            raise ValueError(f"line {reader.line_num}: {error}") from error


def _parquet_rows(path: Path, column: str) -> Rows:
    parquet = import_extra("pyarrow.parquet", "parquet", "Parquet needs pyarrow", str(path))
    with naming_errors("the table", path), parquet.ParquetFile(path) as file:
        _check_column(column, file.schema_arrow.names)
        batches = file.iter_batches(BATCH_ROWS, columns=[column], use_threads=False)
        yield from enumerate((value for batch in batches for value in batch[column].to_pylist()), 1)


# The function that reads a format, and what it counts.
TABLES: dict[str, tuple[Callable[[Path, str], Rows], str]] = {
    ".jsonl": (_json_rows, "Line"), ".csv": (_csv_rows, "Line"),
    ".tsv": (partial(_csv_rows, delimiter="\t"), "Line"), ".parquet": (_parquet_rows, "Row"),
}  # fmt: skip


def _check_column(column: str, known: list[str], place: str = "") -> None:
    """Raise a ValueError if a column is missing, or there twice."""
    if (n := known.count(column)) != 1:
        found, names = f"{n} columns" if n else "no column", ", ".join(known) or "none"
        names = names if len(names) <= 200 else f"{names[:200]}…"
        text = f"{place}{found} {column!r}; there are: {names}. Name one of these (--column)."
        raise ValueError(text)
