"""Encoded rows: ids, tokens and vectors, in memory and as a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..util.files import atomic_file, reading
from ..util.optional_imports import import_extra


@dataclass
class EncodedRows:
    """Some rows with their vectors.

    Attributes:
        ids: numbers of the rows in the corpus.
        tokens: of each row the texts that its vectors belong to: its tokens, its sentences, or
            the whole document.
        vectors: of all rows, one for each of their texts: ``(n, 2P)``, or ``(n, L + 1, 2P)`` with
            all layers.
    """

    ids: Sequence[int]
    tokens: list[list[str]]
    vectors: np.ndarray

    @property
    def offsets(self) -> np.ndarray:
        """Start of each row's vectors, and end of the last ones, ``(n_rows + 1,)``."""
        return np.cumsum([0, *map(len, self.tokens)], dtype=np.int64)

    def __iter__(self) -> Iterator[tuple[int, list[str], np.ndarray]]:
        """The id, texts and vectors of each row."""
        vectors = np.split(self.vectors, self.offsets[1:-1]) if self.tokens else []
        yield from zip(self.ids, self.tokens, vectors, strict=True)

    def to_arrow(self) -> Any:
        """An Arrow table with the columns ``id``, ``tokens`` (strings) and ``vectors``.

        ``vectors`` has one element for each of ``tokens``: a list of 2P floats, or with all layers
        L + 1 lists of them. These are Arrow's large lists: a long text has more than 2³¹ floats.
        """
        pa = import_module("pyarrow")
        values = pa.array(self.vectors.reshape(-1))
        for length in reversed(self.vectors.shape[1:]):
            offsets = np.arange(0, len(values) + 1, length, dtype=np.int64)
            values = pa.LargeListArray.from_arrays(pa.array(offsets), values)
        columns = {
            "id": pa.array(self.ids, pa.int64()),
            "tokens": pa.array(self.tokens, pa.list_(pa.string())),
            "vectors": pa.LargeListArray.from_arrays(pa.array(self.offsets), values),
        }
        return pa.table(columns)

    def save(self, path: Path) -> None:
        """Write a Parquet file, whole or not at all."""
        parquet = import_parquet(str(path))
        with atomic_file(path) as temporary:  # no two vectors are equal
            parquet.write_table(self.to_arrow(), temporary, use_dictionary=False)

    @classmethod
    def load(cls, path: Path, shape: tuple[int, ...]) -> EncodedRows:
        """Read what `save` has written.

        Args:
            path: of the file.
            shape: of a vector.

        Raises:
            ValueError: the file is damaged.
        """
        with damaged(path):
            table = import_parquet(str(path)).read_table(path)
            values = table["vectors"].combine_chunks()
            for _ in ("rows", *shape):
                values = values.flatten()
            vectors = values.to_numpy().reshape(-1, *shape)
            return cls(table["id"].to_pylist(), table["tokens"].to_pylist(), vectors)


def import_parquet(file: str) -> Any:
    """The module that reads and writes Parquet, from the extra that brings it.

    Args:
        file: the one to read or write, for the error message.
    """
    return import_extra("pyarrow.parquet", "parquet", "Parquet needs pyarrow", file)


def count(path: Path) -> tuple[int, int]:
    """Numbers of rows and of vectors in a file that `EncodedRows.save` has written."""
    with damaged(path):
        tokens = import_parquet(str(path)).read_table(path, columns=["tokens"])["tokens"]
        return len(tokens), len(tokens.combine_chunks().flatten())


def damaged(path: Path) -> Any:
    """A context in which the errors of a part are one that says what to do."""
    return reading("the part, which can be removed to encode it again,", path)
