"""Rows of Parquet: texts or words, and their ids."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from ..util.files import reading
from ..util.optional_imports import import_extra

BATCH_ROWS = 4096  # read at once
COLUMNS = ("tokens", "text")  # of which the first one counts


def import_parquet(file: str) -> Any:
    """The module that reads and writes Parquet, from the extra that brings it.

    Args:
        file: the one to read or write, for the error message.
    """
    return import_extra("pyarrow.parquet", "parquet", "Parquet needs pyarrow", file)


def find_columns(file: Path, column: str | None = None) -> tuple[str, str | None]:
    """The column of texts or words of a file, and the type of its ids.

    Args:
        file: its path.
        column: of the texts or words; None for ``"tokens"`` or ``"text"``.

    Returns:
        Its name; and ``"int64"``, ``"uint64"`` or ``"string"``, None without a column ``id``.

    Raises:
        ValueError: there is no such column, the ids are neither integers nor text, or the file
            cannot be read.
    """
    parquet = import_parquet(str(file))
    with reading("the Parquet file", file):
        schema = parquet.read_schema(file)
        wanted = COLUMNS if column is None else (column,)
        found = [name for name in wanted if name in schema.names]
        if not found:
            raise ValueError(
                f"there is no column {' or '.join(map(repr, wanted))} in {schema.names}; name one "
                f"with --column"
            )
        return found[0], _id_type(schema.field("id").type) if "id" in schema.names else None


def _id_type(kind: Any) -> str:
    types = import_module("pyarrow.types")
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_integer(kind):
        return "uint64" if types.is_uint64(kind) else "int64"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "string"
    raise ValueError(f"its column 'id' has the type {kind}; expected integers or text")


def parquet_rows_in(file: Path, column: str | None = None) -> Iterator[tuple[Any, Any]]:
    """Ids (None without such a column), and texts or lists of words.

    Args:
        file, column: see `find_columns`.

    Raises:
        ValueError: see `find_columns`.
    """
    parquet, (texts, id_type) = import_parquet(str(file)), find_columns(file, column)
    names = [texts] if id_type is None else [texts, "id"]
    with parquet.ParquetFile(file) as opened:
        batches = opened.iter_batches(batch_size=BATCH_ROWS, columns=names)
        while True:
            with reading("the Parquet file", file):
                batch = next(batches, None)
                if batch is None:
                    return
                rows = batch[texts].to_pylist()
                ids = [None] * len(rows) if id_type is None else batch["id"].to_pylist()
            yield from zip(ids, rows, strict=True)
