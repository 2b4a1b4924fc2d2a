"""Writes vectors to files: Parquet and NumPy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..util.files import atomic_file, naming_errors
from ..util.optional_imports import import_extra, require_extra
from .rows import EncodedRows

PARQUET, NUMPY = ".parquet", ".npy"  # suffixes of outputs; that of Parquet is a directory of parts
NEEDS_PYARROW = "parquet", "parts are written as Parquet, which needs pyarrow"  # extra, and need
TEXTS = {"tokens": "tokens", "sentences": "sentences", "documents": "text"}  # columns by level


def check_output(out: Path, level: str, keep: Sequence[str]) -> None:
    """Check the path of an output.

    Args:
        out: the path, whose suffix decides the format.
        level: what has a vector, see `Encoder`.
        keep: the names of the columns to copy.

    Raises:
        ValueError: no format has the suffix, its library is not installed, or it cannot have the
            columns.
    """
    if out.suffix not in (PARQUET, NUMPY):
        raise ValueError(f"The format of '{out}' is unknown: end its name in {PARQUET} or {NUMPY}.")
    require_extra("pyarrow", *NEEDS_PYARROW, str(out))  # parts are Parquet for either format
    if taken := {TEXTS.get(level), "vectors"} & {*keep}:
        raise ValueError(f"Cannot keep the column {taken.pop()!r}: the output has one of its own.")


def import_parquet(file: Path) -> Any:
    return import_extra("pyarrow.parquet", *NEEDS_PYARROW, str(file))


def output_files(out: Path) -> list[Path]:
    """The files of an output, the output itself last."""
    beside = [".offsets.npy", ".tokens.jsonl"] * (out.suffix == NUMPY)
    return [*map(out.with_suffix, beside), out]


def kept_types(kept: Iterable[dict[str, list[Any]]]) -> dict[str, Any]:
    """The Arrow type of each kept column, the same for all parts: a column may have integers in one
    part and floats in another, or only nulls.

    Args:
        kept: the columns of each chunk of the corpus.

    Raises:
        ValueError: a column has values of several types, or of a type that Parquet does not have.
    """
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    types: dict[str, Any] = {}
    for name, values in chain.from_iterable(columns.items() for columns in kept):
        try:
            found = {pa.array(values).type, types.get(name, pa.null())}
            schemas = [pa.schema([(name, kind)]) for kind in found]
            schema = pa.unify_schemas(schemas, promote_options="permissive")
            parquet.write_table(schema.empty_table(), BytesIO())
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"Cannot keep the column {name!r}: {error}") from error
        types[name] = schema.field(name).type
    return types


def to_arrow(rows: EncodedRows, types: Mapping[str, Any] | None = None) -> Any:
    """An Arrow table with the columns ``id``, `TEXTS` of the level, ``vectors``, and the kept ones.
    A kept column ``id`` replaces the numbers of the rows.

    ``vectors`` has an element for each text of a row: a list of 2P floats, or with all layers L + 1
    such lists. They are Arrow's large lists, for a long text may have more than 2³¹ floats.

    Args:
        rows: the rows.
        types: the types of kept columns, see `kept_types`.
    """
    pa = import_module("pyarrow")
    values = pa.array(rows.vectors.reshape(-1))
    for length in reversed(rows.vectors.shape[1:]):
        offsets = np.arange(0, len(values) + 1, length, dtype=np.int64)
        values = pa.LargeListArray.from_arrays(pa.array(offsets), values)
    texts = pa.array(rows.tokens, pa.list_(pa.string()))
    columns = {
        "id": pa.array(rows.ids, pa.int64()),
        TEXTS[rows.level]: texts.flatten() if rows.level == "documents" else texts,
        "vectors": pa.LargeListArray.from_arrays(pa.array(rows.offsets), values),
    }
    kept = {name: pa.array(values, (types or {})[name]) for name, values in rows.kept.items()}
    return pa.table(columns | kept)


def write_part(rows: EncodedRows, path: Path, types: Mapping[str, Any] | None = None) -> None:
    """Write rows to a Parquet file, whole or not at all; see `to_arrow`."""
    parquet = import_parquet(path)
    with atomic_file(path) as temporary:  # no two vectors are equal
        parquet.write_table(to_arrow(rows, types), temporary, use_dictionary=False)


def read_part(path: Path, *columns: str) -> Any:
    """Read columns of a part as Arrow arrays.

    Raises:
        ValueError: the file is damaged.
    """
    with naming_errors("the part, which can be removed to encode it again,", path):
        table = import_parquet(path).read_table(path, columns=list(dict.fromkeys(columns)))
        return [table[name].combine_chunks() for name in columns]


def count_part(path: Path, level: str) -> tuple[int, int]:
    """Count the rows and the vectors in a part."""
    [texts] = read_part(path, TEXTS[level])
    return len(texts), len(texts if level == "documents" else texts.flatten())


def rows_of_part(
    path: Path, shape: tuple[int, ...], level: str, keep: Sequence[str] = ()
) -> EncodedRows:
    """Read the rows of a part.

    Args:
        path: the file.
        shape: the shape of a vector.
        level: what has a vector, see `Encoder`.
        keep: the names of the kept columns.
    """
    ids, texts, values, *kept = read_part(path, "id", TEXTS[level], "vectors", *keep)
    for _ in ("rows", *shape):
        values = values.flatten()
    tokens = [[text] for text in texts.to_pylist()] if level == "documents" else texts.to_pylist()
    vectors = values.to_numpy().reshape(-1, *shape)
    columns = {name: column.to_pylist() for name, column in zip(keep, kept, strict=True)}
    return EncodedRows(ids.to_pylist(), tokens, vectors, level, columns)


def write_npy(out: Path, parts: Iterable[EncodedRows], shape: tuple[int, ...], dtype: str) -> None:
    """Write the vectors of all rows as one array ``(N, 2P)`` or ``(N, L + 1, 2P)``, which can be
    mapped into memory.

    Beside it, ``….offsets.npy`` has the start of each row, ``(n_rows + 1,)``, and
    ``….tokens.jsonl`` the other columns of `to_arrow`.
    """
    offsets_path, tokens_path, _ = output_files(out)
    lengths: list[int] = []
    with ExitStack() as stack:
        array_file, offsets_file, tokens_file = (
            stack.enter_context(atomic_file(path)) for path in (out, offsets_path, tokens_path)
        )
        file = stack.enter_context(open(array_file, "wb"))
        lines = stack.enter_context(open(tokens_file, "w", encoding="utf-8", newline="\n"))
        header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            part.vectors.tofile(file)
            for i, (id, texts) in enumerate(zip(part.ids, part.tokens, strict=True)):
                shown = texts[0] if part.level == "documents" else texts
                record = {"id": id, TEXTS[part.level]: shown}
                record |= {name: values[i] for name, values in part.kept.items()}
                lines.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
                lengths.append(len(texts))
        np.save(offsets_file, np.cumsum([0, *lengths], dtype=np.int64))
