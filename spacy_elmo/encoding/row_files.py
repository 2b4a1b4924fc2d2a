"""A corpus in rows, read in chunks from files in any format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from glob import escape
from hashlib import blake2b
from os.path import abspath
from pathlib import Path
from typing import Any, NamedTuple

from ..text.docbin import stored_docs_in
from ..text.segments import chunks
from ..text.shards import COMPRESSIONS, find_files, form, is_shard, read_lines
from ..text.texts import FORMATS, TEXT_SUFFIXES, texts_in
from .conllu import conllu_sentences_in
from .parquet import id_type_of, parquet_rows_in
from .rows import Row, text_of

CONLLU, PARQUET = (".conllu", ".conll"), ".parquet"
SUFFIXES = (
    *TEXT_SUFFIXES,
    *(form + packing for form in CONLLU for packing in COMPRESSIONS),
    PARQUET,
)
MAX_ROWS = 4096  # in a chunk, however short they are
CHARACTERS_PER_TOKEN = 5  # roughly


class Chunk(NamedTuple):
    """Rows that are encoded together.

    Attributes:
        ids: one for each row.
        rows: see `Row`.
        id_type: the ids' type in Arrow, or its name; the same in all chunks.
    """

    ids: list[Any]
    rows: list[Row]
    id_type: Any = "int64"


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
        wanted = f"{FORMATS}, CoNLL-U (.conllu) or Parquet"
        return find_files(self.path, SUFFIXES, "corpus", wanted)

    def includes(self, path: Path) -> bool:
        """Tell whether a file would be, or be in, the corpus, if it were there."""
        root = Path(self.path)
        pattern = abspath(root)
        if root.exists():
            pattern = escape(str(root.resolve())) + "/*" * root.is_dir()
        return fnmatch(str(path.resolve()), pattern) or fnmatch(abspath(path), pattern)

    def id_type(self) -> Any:
        """The type in Arrow of the ids in files of Parquet; None without ids: rows are numbered.

        Raises:
            ValueError: some files have ids and others none, or of another type; or a file of
                Parquet cannot be read.
        """
        found = {id_type_of(f) if form(f) == PARQUET else None: f for f in self.files()}
        if len(found) > 1:
            kinds = ", ".join(f"'{file}' has {kind or 'none'}" for kind, file in found.items())
            raise ValueError(
                f"The files of a corpus need ids of one type, or none: {kinds}. Encode them apart."
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
        for some in chunks(pairs, limit, MAX_ROWS, lambda pair: len(text_of(pair[1]))):
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
            yield from parquet_rows_in(file, self.column)
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
