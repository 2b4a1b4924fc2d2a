"""A row of a corpus: a text, words or a Doc."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..text.docbin import StoredDoc
from ..text.texts import check_text
from ..util.settings import shorten

Row = str | list[str] | StoredDoc  # a text to tokenize, the words of a sentence, or a Doc


def check_row(row: Any) -> Row:
    """A text, or the words of a sentence; None, a null of Spark or pandas, is an empty text.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(row, list | tuple | np.ndarray):
        return check_text(row)
    if not all(isinstance(word, str) and word for word in row):
        raise ValueError(f"expected words that are not empty, found {shorten(list(row))}")
    return list(map(str, row))


def text_of(row: Row) -> str:
    """The text of a row, words with spaces between them."""
    if isinstance(row, StoredDoc):
        return row.text
    return row if isinstance(row, str) else " ".join(row)


def make_sentence(vocab: Vocab, words: list[str], spaces: list[bool] | None = None) -> Doc:
    """A Doc that is a single sentence."""
    starts: list[Any] = [i == 0 for i in range(len(words))]
    return Doc(vocab, words=words, spaces=spaces, sent_starts=starts)


def make_docs(nlp: Language, rows: Sequence[Row]) -> Iterator[Doc]:
    """The Docs of rows; no component runs."""
    for row in rows:
        if isinstance(row, str):
            yield nlp.make_doc(row)
        elif isinstance(row, StoredDoc):
            yield Doc(nlp.vocab).from_bytes(row.data)
        else:
            yield make_sentence(nlp.vocab, row)
