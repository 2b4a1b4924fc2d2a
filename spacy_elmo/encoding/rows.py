"""A corpus in rows, read in chunks: texts, words or Docs of files in any format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from glob import escape
from hashlib import blake2b
from os.path import abspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..text.docbin import StoredDoc, stored_docs_in
from ..text.segments import chunks
from ..text.shards import COMPRESSIONS, find_files, form, is_shard, read_lines
from ..text.texts import FORMATS as TEXT_FORMATS
from ..text.texts import TEXT_SUFFIXES, texts_in
from ..util.settings import shorten
from .conllu import conllu_sentences_in
from .parquet import find_columns, parquet_rows_in

CONLLU, PARQUET = (".conllu", ".conll"), ".parquet"
SUFFIXES = (
    *TEXT_SUFFIXES,
    *(form + packing for form in CONLLU for packing in COMPRESSIONS),
    PARQUET,
)
FORMATS = f"{TEXT_FORMATS}, CoNLL-U (.conllu) or Parquet"
MAX_ROWS = 4096  # in a chunk, however short they are
CHARACTERS_PER_TOKEN = 5  # roughly

Row = str | list[str] | StoredDoc  # a text to tokenize, the words of a sentence, or a Doc


class Chunk(NamedTuple):
    """Rows that are encoded together.

    Attributes:
        ids: one for each row.
        rows: see `Row`.
        id_type: name of the ids' type in Arrow; the same in all chunks.
    """

    ids: list[Any]
    rows: list[Row]
    id_type: str = "int64"


@dataclass(frozen=True)
class RowFiles:
    """Files of rows.

    Args:
        path: a file, a directory of files, or a pattern such as ``texts/*.jsonl.gz``. Rows are the
            lines of text files, the texts of JSONL, CSV, TSV and Parquet, the Docs of ``.spacy``
            files, and the sentences of CoNLL-U and of shards, which are recognized by name and not
            tokenized again.
        tokenized: text files have words separated by spaces, one sentence per line.
        column: of the texts in JSONL, CSV, TSV and Parquet; None for ``"text"``, or Parquet's
            ``"tokens"``, lists of words.
    """

    path: str
    tokenized: bool = False
    column: str | None = None

    def files(self) -> list[Path]:
        """All files, sorted by name.

        Raises:
            ValueError: there are none.
        """
        return find_files(self.path, SUFFIXES, "corpus", FORMATS)

    def includes(self, path: Path) -> bool:
        """Tell whether a file would be, or be in, the corpus, if it were there."""
        root = Path(self.path)
        pattern = abspath(root)
        if root.exists():
            pattern = escape(str(root.resolve())) + "/*" * root.is_dir()
        return fnmatch(str(path.resolve()), pattern) or fnmatch(abspath(path), pattern)

    def id_type(self) -> str | None:
        """Name in Arrow of the type of the ids in files of Parquet.

        Returns:
            None if there are none: rows are numbered from 0.

        Raises:
            ValueError: some files have ids and others none, or of another type; or a file of
                Parquet cannot be read.
        """
        found: dict[str | None, Path] = {}
        for file in self.files():
            is_parquet = form(file) == PARQUET
            found[find_columns(file, self.column)[1] if is_parquet else None] = file
        if len(found) > 1:
            kinds = [f"'{file}' has {kind or 'none'}" for kind, file in found.items()]
            raise ValueError(
                f"The files of a corpus need ids of one type, or none: {', '.join(kinds)}. Give "
                f"each file a column 'id' of the same type, or encode them apart."
            )
        return next(iter(found))

    def fingerprint(self) -> str:
        """Of the files' names and sizes: whether a job that continues has the same corpus. A byte
        that could not be read may be mended meanwhile."""
        files = [(file.name, file.stat().st_size) for file in self.files()]
        return f"{len(files)} files, {blake2b(repr(files).encode(), digest_size=8).hexdigest()}"

    def chunks(self, n_tokens: int) -> Iterator[Chunk]:
        """All rows in order, always in the same chunks; at least one, which may be empty.

        Args:
            n_tokens: of a chunk, approximately: text is not tokenized here.

        Raises:
            ValueError: a file cannot be read, or see `id_type`.
        """
        first, id_type = 0, self.id_type()
        pairs = (pair for file in self.files() for pair in self.rows_in(file))
        limit = n_tokens * CHARACTERS_PER_TOKEN
        for some in chunks(pairs, limit, MAX_ROWS, lambda pair: size(pair[1])):
            ids, rows = map(list, zip(*some, strict=True))
            if id_type is None:
                ids = list(range(first, first + len(rows)))
            yield Chunk(ids, rows, id_type or "int64")
            first += len(rows)
        if first == 0:
            yield Chunk([], [], id_type or "int64")

    def rows_in(self, file: Path) -> Iterator[tuple[Any, Row]]:
        """The rows of a file, with their ids if it has any (else None)."""
        rows: Iterator[Any]
        if form(file) == PARQUET:
            yield from parquet_rows(file, self.column)
            return
        if form(file) in CONLLU:
            rows = conllu_sentences_in(file)
        elif form(file) == ".spacy":
            rows = stored_docs_in(file)
        elif is_shard(file):
            rows = map(str.split, read_lines(file))
        else:
            rows = texts_in(file, self.column)
            rows = map(str.split, rows) if self.tokenized else rows
        yield from ((None, row) for row in rows)


def parquet_rows(file: Path, column: str | None) -> Iterator[tuple[Any, Row]]:
    """The rows of a Parquet file with their ids; a ValueError names the file."""
    for id, row in parquet_rows_in(file, column):
        try:
            yield id, check_row(row)
        except ValueError as error:
            raise ValueError(f"Cannot read the Parquet file {file}: {error}") from None


def check_row(row: Any) -> Row:
    """A text, or the words of a sentence; None, a null of Spark or pandas, is an empty text.

    Raises:
        ValueError: it is something else.
    """
    if row is None:
        return ""
    if isinstance(row, StoredDoc):
        return row
    if isinstance(row, str):
        return str(row)  # spaCy takes no strings of NumPy
    if isinstance(row, list | tuple | np.ndarray):
        if all(isinstance(word, str) and word for word in row):
            return list(map(str, row))
        row = list(row)
    what = f"Give texts, or lists of words that are not empty; found {shorten(row)}."
    if isinstance(row, float) and row != row:
        what += " Where pandas has nan for a text that is missing: texts.fillna('')."
    raise ValueError(what)


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


def size(row: Row) -> int:
    """Size in characters, with a space after each word."""
    if isinstance(row, list):
        return sum(map(len, row)) + len(row)
    return len(row.text if isinstance(row, StoredDoc) else row)
