"""The texts of a file: lines, or a column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from .shards import FORMATS, UNREAD, form, read_lines
from .tables import TABLES, rows_in

LINE_END = re.compile("\r\n|\r|\n")


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
