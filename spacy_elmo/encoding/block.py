"""Encoded rows: ids, tokens and vectors, as a file and as an Arrow table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from ..util.files import atomic_file, reading
from ..util.optional_imports import import_extra


def import_pyarrow(file: str) -> Any:
    """The library that reads and writes Parquet, from the extra that brings it.

    Args:
        file: the one to read or write, for the error message.
    """
    import_extra("pyarrow.parquet", "parquet", "Parquet needs pyarrow", file)
    return import_module("pyarrow")


def plain_ids(ids: Any) -> tuple[list[Any], str]:
    """Ids as JSON holds them: numbers and strings; times in ISO 8601, bytes as hexadecimal digits.

    Nulls stay null, and numbers that are not finite become null.

    Args:
        ids: an array of Arrow.

    Returns:
        The ids, and the name of their type in Arrow: 64-bit integers, floats or text.

    Raises:
        ValueError: they are lists, structs or the like.
    """
    pa = import_pyarrow("Ids of rows")
    if pa.types.is_dictionary(ids.type):
        ids = ids.cast(ids.type.value_type)
    kind, name = ids.type, "string"
    if pa.types.is_nested(kind):
        raise ValueError(
            f"the column 'id' has the type {kind}; expected text, numbers, times, UUIDs or bytes"
        )
    if pa.types.is_integer(kind):
        name = "uint64" if kind == pa.uint64() else "int64"
    elif pa.types.is_floating(kind):
        name = "double"
    if name != "string" or pa.types.is_temporal(kind):  # Python has no nanoseconds
        ids = ids.cast(name)
    return [_plain(each) for each in ids.to_pylist()], name


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or type(value) is int else str(value)


@dataclass
class Block:
    """Some rows of the output.

    Attributes:
        ids: one for each row, as JSON holds them.
        tokens: of each row the texts that its vectors belong to: its tokens, its sentences, or
            the whole document.
        vectors: of all rows, one for each of their texts: ``(n, 2P)``, or ``(n, L + 1, 2P)`` with
            all layers.
        docs: if Docs are written, a DocBin of them with their vectors; ``vectors`` is empty then.
        id_type: name of the ids' type in Arrow; None for what Arrow takes them for.
    """

    ids: list[Any]
    tokens: list[list[str]]
    vectors: np.ndarray
    docs: bytes = b""
    id_type: str | None = None

    @property
    def offsets(self) -> np.ndarray:
        """Start of each row's vectors, and end of the last ones, ``(n_rows + 1,)``."""
        return np.cumsum([0, *map(len, self.tokens)], dtype=np.int64)

    def rows(self) -> Iterator[tuple[Any, list[str], np.ndarray]]:
        """The id, texts and vectors of each row."""
        vectors = np.split(self.vectors, self.offsets[1:-1]) if self.tokens else []
        yield from zip(self.ids, self.tokens, vectors, strict=True)

    def save(self, path: Path) -> None:
        """Write the block to a file, whole or not at all."""
        rows = json.dumps([self.ids, self.tokens, self.id_type]).encode()
        arrays = {"vectors": self.vectors, "rows": _bytes(rows), "docs": _bytes(self.docs)}
        with atomic_file(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: Path, with_vectors: bool = True) -> Block:
        """Read what `save` has written.

        Args:
            path: of the file.
            with_vectors: False leaves them, and Docs, on the disk.

        Raises:
            ValueError: the file is damaged.
        """
        with reading("the part, which can be removed to encode it again,", path):
            with np.load(path, allow_pickle=False) as arrays:
                ids, tokens, id_type = json.loads(arrays["rows"].tobytes())
                texts = [text for row in tokens for text in row]
                if len(ids) != len(tokens) or not all(isinstance(text, str) for text in texts):
                    raise ValueError("its ids and its tokens are not those of the same rows")
                block = cls(ids, tokens, np.empty(0), id_type=id_type)
                n_vectors = int(block.offsets[-1])
                if with_vectors:
                    block.vectors, block.docs = arrays["vectors"], arrays["docs"].tobytes()
                    if not block.docs and len(block.vectors) != n_vectors:
                        raise ValueError(f"it has {len(block.vectors):,} vectors of {n_vectors:,}")
                    if not np.isfinite(block.vectors).all():
                        raise ValueError("it has values that are not finite")
        return block

    def to_arrow(self) -> Any:
        """An Arrow table with the columns ``id``, ``tokens`` (strings) and ``vectors``.

        ``vectors`` has one element for each of ``tokens``: a list of 2P floats, or with all layers
        L + 1 lists of them. These are Arrow's large lists: a long text has more than 2³¹ floats.
        """
        pa = import_pyarrow("Encoded rows")
        values = pa.array(self.vectors.reshape(-1))
        for length in reversed(self.vectors.shape[1:]):
            offsets = np.arange(0, len(values) + 1, length, dtype=np.int64)
            values = pa.LargeListArray.from_arrays(pa.array(offsets), values)
        id_type = self.id_type or (None if self.ids else "int64")
        columns = {
            "id": pa.array(self.ids, id_type and pa.type_for_alias(id_type)),
            "tokens": pa.array(self.tokens, pa.list_(pa.string())),
            "vectors": pa.LargeListArray.from_arrays(pa.array(self.offsets), values),
        }
        return pa.table(columns)


def _bytes(data: bytes) -> np.ndarray:
    return np.frombuffer(data, dtype=np.uint8)
