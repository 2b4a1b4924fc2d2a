"""The texts of a file: lines, or one column of JSONL, CSV or TSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from ..util.settings import shorten
from .shards import COMPRESSIONS, JSONL, MAX_LINE, NO_TEXT, form, read_lines

FORMATS = (
    "plain text (.txt), JSONL (.jsonl), CSV (.csv) or TSV (.tsv), each also .gz, .xz or .zst, or "
    "Docs (.spacy)"
)
DELIMITERS = {".csv": ",", ".tsv": "\t"}
TEXT_SUFFIXES = (
    ".spacy",
    *(form + packing for form in (".txt", *JSONL, *DELIMITERS) for packing in COMPRESSIONS),
)


def texts_in(path: Path, column: str | None = None) -> Iterator[str]:
    """The texts of a file: a column of CSV or TSV, a key of JSONL, else the lines.

    A null in JSONL is an empty text.

    Args:
        path: of the file; its suffix tells the format.
        column: name of the column or key; None for ``"text"``.

    Raises:
        ValueError: the file cannot be read, is of another format, or has no such column.
    """
    suffix = form(path)
    if suffix == ".json":
        raise ValueError(f"{path}: JSON is read line by line; make it a .jsonl file.")
    if suffix in NO_TEXT:
        raise ValueError(f"'{path}' is not text: expected {FORMATS}.")
    if suffix in JSONL:
        return _json_texts(path, column or "text")
    if suffix in DELIMITERS:
        return _table_texts(path, column or "text", DELIMITERS[suffix])
    return read_lines(path)


def paragraphs_in(path: Path, column: str | None = None) -> Iterator[str]:
    """The lines of each of the texts of a file, see `texts_in`."""
    return chain.from_iterable(map(str.splitlines, texts_in(path, column)))


def check_text(text: Any) -> str:
    """A text of a file or a user; None, a null, is an empty one.

    Raises:
        ValueError: it is something else.
    """
    if text is None:
        return ""
    if not isinstance(text, str):
        what = f"expected a text, found {shorten(text)}"
        if isinstance(text, float) and text != text:
            what += ". A text that is missing is null, or '' (in pandas: texts.fillna(''))"
        raise ValueError(what)
    return str(text)  # spaCy takes no strings of NumPy


def _json_texts(path: Path, column: str) -> Iterator[str]:
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            text = check_text(json.loads(line)[column])
            text.encode()  # which half of a surrogate pair cannot be: it is not a character
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                f"Line {number} of {path} is not JSON with a text, as in "
                f'{{{json.dumps(column)}: "…"}}: {error}'
            ) from error
        yield text


def _table_texts(path: Path, column: str, delimiter: str) -> Iterator[str]:
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    lines = (line + "\n" for line in read_lines(path))
    # TSV has no quoting (IANA's text/tab-separated-values): a field may begin with a quote.
    quoting: Any = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    rows = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    try:
        header = next(rows, [])
        if column not in header:
            raise csv.Error(f"there is no column '{column}' in {header}; name one with --column")
        for row in filter(None, rows):  # empty lines are no rows
            if len(row) != len(header):
                raise csv.Error(f"there are {len(row)} fields, and {len(header)} in the first line")
            yield row[header.index(column)]
    except csv.Error as error:
        raise ValueError(f"Cannot read line {rows.line_num} of {path}: {error}.") from error
