"""Reads a corpus from files in any format, in chunks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from glob import escape
from hashlib import blake2b
from itertools import chain
from os.path import join, realpath
from pathlib import Path
from typing import NamedTuple

from ..text.files import find_files, format_of, is_shard, texts_in
from ..text.readers import stored_docs_in
from ..text.segments import chunks
from .rows import Row, text_of

MAX_ROWS = 4096  # in a chunk, however short they are
CHARACTERS_PER_TOKEN = 5  # roughly


class Chunk(NamedTuple):
    """Rows that are encoded together.

    Attributes:
        ids: their numbers in the corpus.
        rows: the rows.
    """

    ids: range
    rows: list[Row]


@dataclass(frozen=True)
class RowFiles:
    """A corpus in files.

    Args:
        path: a file, a directory, or a pattern such as ``texts/*.jsonl.gz``. Rows are the lines of
            text files, the texts of JSONL, CSV, TSV and Parquet, the Docs of ``.spacy`` files, and
            the sentences of shards, which are recognized by name and not tokenized again.
        tokenized: each text is a sentence with spaces between its words.
        column: the column of texts; None for ``"text"``.
    """

    path: str
    tokenized: bool = False
    column: str | None = None

    def files(self) -> list[Path]:
        """All files, sorted by name; see `find_files`."""
        return find_files(self.path)

    def includes(self, path: Path) -> bool:
        """Tell if a file would belong to the corpus if it existed."""
        pattern = realpath(self.path)
        if Path(pattern).is_dir():
            pattern = escape(pattern) + "/*"
        return fnmatch(join(realpath(path.parent), path.name), pattern)

    def fingerprint(self) -> str:
        """A hash of the files' names and sizes, not of their content: a damaged file can be mended
        before a job resumes."""
        files = [(file.name, file.stat().st_size) for file in self.files()]
        return f"{len(files)} files, {blake2b(repr(files).encode(), digest_size=8).hexdigest()}"

    def chunks(self, n_tokens: int) -> Iterator[Chunk]:
        """Yield all rows in order, always in the same chunks. An empty corpus has an empty chunk.

        Args:
            n_tokens: the approximate size of a chunk; text is not tokenized here.

        Raises:
            ValueError: a file cannot be read.
        """
        first, limit = 0, n_tokens * CHARACTERS_PER_TOKEN
        rows = chain.from_iterable(map(self.rows_in, self.files()))
        for some in chunks(rows, limit, MAX_ROWS, lambda row: len(text_of(row))):
            yield Chunk(range(first, first + len(some)), some)
            first += len(some)
        if first == 0:
            yield Chunk(range(0), [])

    def rows_in(self, file: Path) -> Iterator[Row]:
        """The rows of a file.

        Raises:
            ValueError: the file cannot be read, or has no such column.
        """
        if format_of(file) == ".spacy":
            return stored_docs_in(file)
        texts = texts_in(file, self.column)
        return map(str.split, texts) if self.tokenized or is_shard(file) else texts
