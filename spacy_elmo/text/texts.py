"""The texts of a file: lines, or a key of JSONL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from ..util.settings import shorten
from .shards import FORMATS, TABLES, form, read_lines

LINE_END = re.compile("\r\n|\r|\n")


def texts_in(path: Path, column: str | None = None) -> Iterator[str]:
    """The texts of a file: a key of JSONL, else the lines.

    A null in JSONL is an empty text; so is NaN, as Python writes one.

    Args:
        path: of the file; its suffix tells the format.
        column: name of the key; None for ``"text"``.

    Raises:
        ValueError: the file cannot be read, is of another format, or has no such key.
    """
    if form(path) in (".spacy", *TABLES):
        raise ValueError(
            f"'{path}' is not text: expected {FORMATS}. pandas makes JSONL of a table by "
            f"frame.to_json('texts.jsonl', orient='records', lines=True)."
        )
    if form(path) == ".jsonl":
        return _json_texts(path, column or "text")
    return read_lines(path)


def paragraphs_in(path: Path, column: str | None = None) -> Iterator[str]:
    """The lines of each of the texts of a file, see `texts_in`; they end as those of files do."""
    return chain.from_iterable(map(LINE_END.split, texts_in(path, column)))


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
