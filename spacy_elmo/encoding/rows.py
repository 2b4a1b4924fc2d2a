"""A corpus in rows: text, JSONL, Docs, CoNLL-U, shards or Parquet, read in chunks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..text.readers import FORMATS as TEXT_FORMATS
from ..text.readers import TEXT_SUFFIXES, StoredDocs, read_docbin, read_texts
from ..text.segments import chunks
from ..text.shards import COMPRESSIONS, find_files, is_shard, read_lines
from ..util.files import reading
from ..util.settings import shorten
from .block import import_pyarrow, plain_ids

CONLLU = tuple(form + packing for form in (".conllu", ".conll") for packing in COMPRESSIONS)
PARQUET = ".parquet"
SUFFIXES = (*TEXT_SUFFIXES, *CONLLU, PARQUET)
FORMATS = f"{TEXT_FORMATS}, CoNLL-U (.conllu) or Parquet"
NO_WORD = re.compile(r"\d+[-.]\d+")  # IDs of ranges and of empty nodes in CoNLL-U
MAX_ROWS = 4096  # in a chunk, however short they are
BYTES_PER_TOKEN = 5  # roughly, in text
# Of Parquet; the first one counts.
COLUMNS = {"tokens": "lists of strings that are not empty", "text": "strings"}

Row = str | list[str]  # a text to tokenize, or words


class Chunk(NamedTuple):
    """Rows that are encoded together.

    Attributes:
        ids: one for each row.
        rows: texts, lists of words, or stored Docs.
        id_type: of the ids, see `Block`; the same in all chunks.
    """

    ids: list[Any]
    rows: list[Row] | StoredDocs
    id_type: str = "int64"


@dataclass(frozen=True)
class RowFiles:
    """Files of rows.

    Args:
        path: a file, a directory of files, or a pattern such as ``texts/*.jsonl.gz``. Rows are the
            lines of text files, the ``"text"`` of each line of JSON, the Docs of ``.spacy`` files,
            the sentences of CoNLL-U, and the ``text`` or ``tokens`` of Parquet. Shards that
            `elmo tokenize` has written are recognized by name and not tokenized again.
        tokenized: text files have words separated by spaces, one sentence per line.
    """

    path: str
    tokenized: bool = False

    def files(self) -> list[Path]:
        """All files, sorted by name.

        Raises:
            ValueError: there are none.
        """
        return find_files(self.path, SUFFIXES, "corpus", FORMATS)

    def has_words(self) -> bool:
        """Tell whether rows of a file are words already, and no text to tokenize."""
        for file in self.files():
            is_words = self.tokenized
            if file.suffix == PARQUET:
                is_words = parquet_columns(file)[-1] == "tokens"
            if is_words or file.name.endswith((".spacy", *CONLLU)) or is_shard(file):
                return True
        return False

    def id_type(self) -> str | None:
        """The type of the ids that files of Parquet have, as `plain_ids` reads them.

        Returns:
            Its name in Arrow; None if there are no such ids: rows are numbered from 0.

        Raises:
            ValueError: some files have ids and others none, or of another type; or a file of
                Parquet cannot be read.
        """
        found: dict[str | None, Path] = {}
        for file in self.files():
            found.setdefault(parquet_id_type(file) if file.suffix == PARQUET else None, file)
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
        for is_docs, files in groupby(self.files(), lambda file: file.suffix == ".spacy"):
            parts: Iterator[tuple[Any, Any]]
            if is_docs:
                stored = (part for file in files for part in read_docbin(file, n_tokens, MAX_ROWS))
                parts = ((range(len(part.docs)), part) for part in stored)
            else:
                pairs = (pair for file in files for pair in self.read(file))
                limit = n_tokens * BYTES_PER_TOKEN
                several = chunks(pairs, limit, MAX_ROWS, lambda pair: size(pair[1]))
                parts = (([id for id, _ in some], [row for _, row in some]) for some in several)
            for ids, rows in parts:
                n_rows = len(ids)
                if id_type is None:
                    ids = list(range(first, first + n_rows))
                yield Chunk(ids, rows, id_type or "int64")
                first += n_rows
        if first == 0:
            yield Chunk([], [], id_type or "int64")

    def read(self, file: Path) -> Iterator[tuple[Any, Row]]:
        """The rows of a file, with their ids if it has any (else None)."""
        if file.suffix == PARQUET:
            yield from read_parquet(file)
        elif file.name.endswith(CONLLU):
            yield from ((None, words) for words in read_conllu(file))
        elif is_shard(file):
            yield from ((None, line.split()) for line in read_lines(file))
        else:
            texts = read_texts(file)
            yield from ((None, text.split() if self.tokenized else text) for text in texts)


def make_sentence(vocab: Vocab, words: list[str], spaces: list[bool] | None = None) -> Doc:
    """A Doc that is a single sentence."""
    starts: list[Any] = [i == 0 for i in range(len(words))]
    return Doc(vocab, words=words, spaces=spaces, sent_starts=starts)


def make_docs(nlp: Language, rows: Sequence[Row] | StoredDocs) -> Iterator[Doc]:
    """Docs of texts, of words that are one sentence each, or stored ones; no component runs."""
    if isinstance(rows, StoredDocs):
        yield from rows.read(nlp.vocab)
        return
    for row in rows:
        yield nlp.make_doc(row) if isinstance(row, str) else make_sentence(nlp.vocab, row)


def size(row: Row) -> int:
    """Size in characters, with a space after each word."""
    return len(row) if isinstance(row, str) else sum(map(len, row)) + len(row)


def read_conllu(file: Path) -> Iterator[list[str]]:
    """The words of each sentence: FORM of the syntactic words, without ranges and empty nodes.

    Raises:
        ValueError: the file cannot be read, or a line is not CoNLL-U.
    """
    words: list[str] = []
    for number, line in enumerate(read_lines(file), 1):
        fields = line.rstrip("\r").split("\t")
        if fields == [""]:
            if words:
                yield words
            words = []
        elif fields[0].isdecimal() and len(fields) > 1 and fields[1]:
            words.append(fields[1])
        elif not (line.startswith("#") or (fields[1:] and NO_WORD.fullmatch(fields[0]))):
            raise ValueError(
                f"Line {number} of {file} has no ID in its first column, or no word in its "
                f"second, as CoNLL-U requires, with tabs between columns: {line[:40]!r}."
            )
    if words:
        yield words


def parquet_columns(file: Path) -> list[str]:
    """The columns to read of a Parquet file: ``id``, if there is one, then ``tokens`` or ``text``.

    Raises:
        ValueError: it has neither of the two, or cannot be read.
    """
    parquet = import_pyarrow(str(file)).parquet
    with reading("the Parquet file", file):
        names = parquet.read_schema(file).names
        texts = [name for name in COLUMNS if name in names]
        if not texts:
            raise ValueError("it has no column 'text' (strings) or 'tokens' (lists of them)")
    return ["id", texts[0]] if "id" in names else texts[:1]


def parquet_id_type(file: Path) -> str | None:
    """The type of the ids of a Parquet file, as `plain_ids` reads them; None without ids."""
    if "id" not in parquet_columns(file):
        return None
    with reading("the Parquet file", file):
        schema = import_pyarrow(str(file)).parquet.read_schema(file)
        return plain_ids(schema.empty_table()["id"])[1]


def read_parquet(file: Path) -> Iterator[tuple[Any, Row]]:
    """The rows of a Parquet file with their ids, None if it has no column of them.

    Raises:
        ValueError: see `parquet_columns`; or a row is not of the expected type.
    """
    parquet, columns = import_pyarrow(str(file)).parquet, parquet_columns(file)
    with reading("the Parquet file", file), parquet.ParquetFile(file) as opened:
        for batch in opened.iter_batches(batch_size=MAX_ROWS, columns=columns):
            rows = [check_row(row, columns[-1]) for row in batch[columns[-1]].to_pylist()]
            ids = plain_ids(batch["id"])[0] if "id" in columns else [None] * len(rows)
            yield from zip(ids, rows, strict=True)


def check_row(row: Any, column: str) -> Row:
    """A value of a column of Parquet as a row; a null is an empty text.

    Raises:
        ValueError: it has another type than is expected of the column.
    """
    if row is None:
        return ""
    words = row if column == "tokens" else [row]
    if isinstance(words, list) and all(
        isinstance(word, str) and (word or column == "text") for word in words
    ):
        return row
    raise ValueError(f"the column '{column}' has {shorten(row)}; expected {COLUMNS[column]}")
