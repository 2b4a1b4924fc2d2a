"""Rows of a corpus: texts, lists of words, or Docs; and rows with their vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from ..text.files import check_text
from ..text.readers import StoredDoc
from ..util.settings import shorten

Row = str | list[str] | StoredDoc  # a text to tokenize, the words of a sentence, or a Doc


@dataclass
class EncodedRows:
    """Rows with their vectors.

    Attributes:
        tokens: for each row, the texts that have a vector: its tokens, its sentences, or the whole
            document.
        vectors: the vectors of all these texts, ``(n, 2P)``, or ``(n, L + 1, 2P)`` with all layers.
        level: what has a vector, see `Encoder`.
    """

    tokens: list[list[str]]
    vectors: np.ndarray
    level: str = "tokens"

    @property
    def offsets(self) -> np.ndarray:
        """Where the vectors of each row start, and the last ones end, ``(n_rows + 1,)``."""
        return np.cumsum([0, *map(len, self.tokens)], dtype=np.int64)


def check_rows(rows: Any) -> list[Row]:
    """The rows in a list, Series, 1-D array or generator.

    Raises:
        ValueError: the argument is something else, such as a table, or a row is, see `check_row`.
    """
    kind, shape = type(rows).__name__, tuple(getattr(rows, "shape", (0,)))
    if isinstance(rows, str | Doc | Span | Token):
        found = f"the {kind} {str(rows)[:50]!r}"
        raise ValueError(f"Give a list of texts, as in [text] or [doc.text]; found {found}.")
    # The class tells a table, because an attribute of a Series may be one of its elements.
    is_table = any(hasattr(type(rows), name) for name in ("column_names", "columns"))
    if is_table or isinstance(rows, Mapping):
        raise ValueError(f"Give one column of texts, such as table['text']; found a {kind}.")
    if len(shape) != 1:
        raise ValueError(f"Give one column of texts; found a {kind} of the shape {shape}.")
    if not isinstance(rows, Iterable) or isinstance(rows, bytes | Set):  # sets have no order
        raise ValueError(f"Give a list of texts; found a {kind}.")
    checked = []
    for number, row in enumerate(rows):
        try:
            checked.append(check_row(row))
        except ValueError as error:
            raise ValueError(f"Row {number}: {error}.") from error
    return checked


def check_row(row: Any) -> Row:
    """A row as a text or a list of words. A null is an empty text, see `check_text`.

    Raises:
        ValueError: the row is something else.
    """
    for name in ("as_py", "tolist", "to_list"):  # Arrow; NumPy and pandas; Polars
        if hasattr(row, name):
            row = getattr(row, name)()
            break
    if isinstance(row, StoredDoc):
        return row
    if isinstance(row, Doc | Span | Token):
        raise ValueError(
            f"expected a text, found a {type(row).__name__}: give its text, doc.text, or the words "
            f"of a sentence, [token.text for token in doc]"
        )
    if not isinstance(row, list) and type(row) is not tuple:  # a named tuple is a row of a table
        return check_text(row)
    if not all(isinstance(word, str) and word for word in row):
        raise ValueError(
            f"expected words that are not empty, found {shorten(row)}: give the text of each, such "
            f"as token.text"
        )
    if len(row) == 1 and len(row[0].split()) > 1:
        raise ValueError(f"expected words, found {shorten(row)}: give the text, not a list of it")
    return list(map(str, row))


def text_of(row: Row) -> str:
    """The text of a row; words are joined by spaces."""
    if isinstance(row, StoredDoc):
        return row.text
    return row if isinstance(row, str) else " ".join(row)


def make_sentence(vocab: Vocab, words: list[str], spaces: list[bool] | None = None) -> Doc:
    """Make a Doc with a single sentence."""
    starts: list[Any] = [i == 0 for i in range(len(words))]
    return Doc(vocab, words=words, spaces=spaces, sent_starts=starts)


def make_docs(nlp: Language, rows: Sequence[Row]) -> Iterator[Doc]:
    """Make a Doc from each row; no component runs."""
    for row in rows:
        if isinstance(row, str):
            yield nlp.make_doc(row)
        elif isinstance(row, StoredDoc):
            yield Doc(nlp.vocab).from_bytes(row.data)
        else:
            yield make_sentence(nlp.vocab, row)
