"""Rows of Parquet files, and their ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..util.files import reading
from ..util.optional_imports import import_extra
from .rows import Row, check_row

BATCH_ROWS = 4096  # read at once
COLUMNS = ("tokens", "text")  # of which the first one counts


def import_parquet(file: str) -> Any:
    """The module that reads and writes Parquet, from the extra that brings it.

    Args:
        file: the one to read or write, for the error message.
    """
    return import_extra("pyarrow.parquet", "parquet", "Parquet needs pyarrow", file)


def id_type_of(file: Path) -> Any:
    """The type in Arrow of a file's column ``id``, None without one.

    Raises:
        ValueError: the file cannot be read.
    """
    with reading("the Parquet file", file):
        schema = import_parquet(str(file)).read_schema(file)
        return schema.field("id").type if "id" in schema.names else None


def parquet_rows_in(file: Path, column: str | None = None) -> Iterator[tuple[Any, Row]]:
    """The rows of a file with their ids, None without a column ``id``.

    Args:
        file: its path.
        column: of the texts or words; None for ``"tokens"`` or ``"text"``.

    Raises:
        ValueError: there is no such column, it has something else, or the file cannot be read.
    """
    parquet = import_parquet(str(file))
    with reading("the Parquet file", file), parquet.ParquetFile(file) as opened:
        names = opened.schema_arrow.names
        wanted = COLUMNS if column is None else (column,)
        texts = next((name for name in wanted if name in names), None)
        if texts is None:
            raise ValueError(
                f"there is no column {' or '.join(map(repr, wanted))} in {names}; name one with "
                f"--column"
            )
        for batch in opened.iter_batches(BATCH_ROWS, columns=[texts, "id"]):
            ids = batch["id"].to_pylist() if "id" in names else [None] * len(batch)
            yield from zip(ids, map(check_row, batch[texts].to_pylist()), strict=True)
