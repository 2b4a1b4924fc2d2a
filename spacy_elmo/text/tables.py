"""The texts of a file: lines, or a column of JSONL, CSV, TSV or Parquet."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

from ..util.files import reading
from ..util.optional_imports import import_extra
from ..util.settings import shorten
from .files import FORMATS, MAX_LINE, UNREAD, form, limited_lines, open_text, read_lines

LINE_END = re.compile("\r\n|\r|\n")
BATCH_ROWS = 64  # of Parquet, in memory together
Rows = Iterator[tuple[int, list[Any]]]  # the number of the line, or of the row; the values


def texts_in(path: Path, column: str | None = None) -> Iterator[str]:
    """The texts of a file: a column of JSONL, CSV, TSV or Parquet, else the lines.

    Args:
        path: of the file; its suffix tells the format.
        column: its name, in JSONL the key; None for ``"text"``. See `rows_in`.

    Raises:
        ValueError: the file cannot be read, is of another format, or has no such column.
    """
    if form(path) in (".spacy", *UNREAD):
        raise ValueError(
            f"'{path}' is not text: expected {FORMATS}. pandas makes JSONL of a table by "
            f"frame.to_json('texts.jsonl', orient='records', lines=True)."
        )
    if form(path) in TABLES:
        return (text for [text] in rows_in(path, [column or "text"]))
    return read_lines(path)


def paragraphs_in(path: Path, column: str | None = None) -> Iterator[str]:
    """The lines of each of the texts of a file, see `texts_in`; they end as those of files do."""
    return chain.from_iterable(map(LINE_END.split, texts_in(path, column)))


def rows_in(path: Path, columns: Sequence[str]) -> Iterator[list[Any]]:
    """The values of some columns, row by row; the first column has the texts.

    A null (in JSONL also NaN, as Python writes one) is an empty text. The fields of CSV and TSV are
    texts, quoted as Python's `csv` and spreadsheets do it; the first line has their names.

    Args:
        path: of a file whose `form` is one of `TABLES`.
        columns: their names, in JSONL the keys.

    Raises:
        ValueError: the file cannot be read, has no such column, or a text is none.
    """
    read, unit = TABLES[form(path)]
    for number, (text, *others) in read(path, columns):
        try:
            text = check_text(text)
            text.encode()  # which half of a surrogate pair cannot be: it is not a character
            if len(text) > MAX_LINE:
                raise ValueError(f"the text has more than {MAX_LINE:,} characters")
        except ValueError as error:
            raise ValueError(f"{unit} {number} of {path}: {error}.") from error
        yield [text, *others]


def check_text(text: Any) -> str:
    """A text of a file or a user; a null (None, a float that is no number, pandas' ``<NA>``) is an
    empty one.

    Raises:
        ValueError: it is something else.
    """
    is_nan = isinstance(text, float) and text != text
    if text is None or is_nan or type(text).__name__ == "NAType":
        return ""
    if not isinstance(text, str):
        raise ValueError(f"expected a text, found {shorten(text)}")
    return str(text)  # spaCy takes no strings of NumPy


def _json_rows(path: Path, columns: Sequence[str]) -> Rows:
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        place = f"Line {number} of {path}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{place} is not JSON: {error}") from error
        if not isinstance(record, dict):
            example = f'{{{json.dumps(columns[0])}: "…"}}'
            raise ValueError(f"{place} is not a JSON object, as in {example}: {shorten(record)}")
        _check_columns(columns, list(record), f"{place}: ")
        yield number, [record[column] for column in columns]


def _csv_rows(path: Path, columns: Sequence[str], delimiter: str = ",") -> Rows:
    csv.field_size_limit(MAX_LINE)
    with (
        reading("the table", path),
        open_text(path, encoding="utf-8-sig", newline="") as file,  # line ends inside of texts stay
    ):
        reader = csv.reader(limited_lines(file), delimiter=delimiter, strict=True)
        try:
            names = next(reader, [])
            _check_columns(columns, names)
            places = [names.index(column) for column in columns]
            for values in filter(None, reader):  # others are empty lines
                if len(values) != len(names):
                    raise csv.Error(f"{len(values)} fields, where there are {len(names)} columns")
                yield reader.line_num, [values[i] for i in places]
        except csv.Error as error:
            raise ValueError(f"line {reader.line_num}: {error}") from error


def _tsv_rows(path: Path, columns: Sequence[str]) -> Rows:
    return _csv_rows(path, columns, "\t")


def _parquet_rows(path: Path, columns: Sequence[str]) -> Rows:
    parquet = import_extra("pyarrow.parquet", "parquet", "Parquet needs pyarrow", str(path))
    numbers, chosen = count(1), list(dict.fromkeys(columns))
    with reading("the table", path), parquet.ParquetFile(path) as file:
        _check_columns(columns, file.schema_arrow.names)
        for batch in file.iter_batches(BATCH_ROWS, columns=chosen, use_threads=False):
            lists = [batch[column].to_pylist() for column in columns]
            for values, number in zip(zip(*lists, strict=True), numbers, strict=False):
                yield number, list(values)


# What reads a format, and what it counts.
TABLES: dict[str, tuple[Callable[[Path, Sequence[str]], Rows], str]] = {
    ".jsonl": (_json_rows, "Line"),
    ".csv": (_csv_rows, "Line"),
    ".tsv": (_tsv_rows, "Line"),
    ".parquet": (_parquet_rows, "Row"),
}


def _check_columns(columns: Sequence[str], known: list[str], place: str = "") -> None:
    """Raise a ValueError if a column is not there, or there twice."""
    for column in columns:
        if (n := known.count(column)) != 1:
            found, names = f"{n} columns" if n else "no column", ", ".join(known) or "none"
            names = names if len(names) <= 200 else f"{names[:200]}…"
            option = "--column" if column == columns[0] else "--keep"
            raise ValueError(
                f"{place}{found} {column!r}; there are: {names}. Name one of these ({option})."
            )
