"""Writes vectors to files: Parquet and NumPy."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..util.files import atomic_file, naming_errors
from ..util.optional_imports import import_extra, require_extra
from .rows import EncodedRows

PARQUET, NUMPY = ".parquet", ".npy"  # suffixes of outputs; that of Parquet is a directory of parts
NEEDS_PYARROW = "parquet", "parts are written as Parquet, which needs pyarrow"  # extra, and need
TEXTS = {"tokens": "tokens", "sentences": "sentences", "documents": "text"}  # columns by level


def check_output(out: Path) -> None:
    """Check the path of an output.

    Raises:
        ValueError: its suffix is no format's, or pyarrow is not installed.
    """
    if out.suffix not in (PARQUET, NUMPY):
        raise ValueError(f"The format of '{out}' is unknown: end its name in {PARQUET} or {NUMPY}.")
    require_extra("pyarrow", *NEEDS_PYARROW, str(out))  # parts are Parquet for either format


def import_parquet(file: Path) -> Any:
    return import_extra("pyarrow.parquet", *NEEDS_PYARROW, str(file))


def output_files(out: Path) -> list[Path]:
    """The files of an output, the output itself last."""
    beside = [".offsets.npy", ".tokens.jsonl"] * (out.suffix == NUMPY)
    return [*map(out.with_suffix, beside), out]


def write_part(rows: EncodedRows, ids: range, path: Path) -> None:
    """Write a Parquet file with the columns ``id``, `TEXTS` of the level, and ``vectors``; whole or
    not at all.

    ``vectors`` has an element for each text of a row: a list of 2P floats, or with all layers L + 1
    such lists. They are Arrow's large lists, for a long text may have more than 2³¹ floats.

    Args:
        rows: the rows.
        ids: their numbers in the corpus.
        path: the file.
    """
    parquet, pa = import_parquet(path), import_module("pyarrow")
    values = pa.array(rows.vectors.reshape(-1))
    for length in reversed(rows.vectors.shape[1:]):
        offsets = np.arange(0, len(values) + 1, length, dtype=np.int64)
        values = pa.LargeListArray.from_arrays(pa.array(offsets), values)
    texts = pa.array(rows.tokens, pa.list_(pa.string()))
    columns = {
        "id": pa.array(ids, pa.int64()),
        TEXTS[rows.level]: texts.flatten() if rows.level == "documents" else texts,
        "vectors": pa.LargeListArray.from_arrays(pa.array(rows.offsets), values),
    }
    with atomic_file(path) as temporary:  # no two vectors are equal
        parquet.write_table(pa.table(columns), temporary, use_dictionary=False)


def read_part(path: Path, *columns: str) -> Any:
    """Read columns of a part as Arrow arrays.

    Raises:
        ValueError: the file is damaged.
    """
    with naming_errors("the part, which can be removed to encode it again,", path):
        table = import_parquet(path).read_table(path, columns=list(columns))
        return [table[name].combine_chunks() for name in columns]


def count_part(path: Path, level: str) -> tuple[int, int]:
    """Count the rows and the vectors in a part."""
    [texts] = read_part(path, TEXTS[level])
    return len(texts), len(texts if level == "documents" else texts.flatten())


def write_npy(
    out: Path, parts: Iterable[Path], level: str, shape: tuple[int, ...], dtype: str
) -> None:
    """Write the vectors of all rows as one array, which can be mapped into memory.

    Beside it, ``….offsets.npy`` has the start of each row, ``(n_rows + 1,)``, and
    ``….tokens.jsonl`` the other columns of a part, see `write_part`.

    Args:
        out: the file of the array.
        parts: the files to read.
        level: what has a vector, see `Encoder`.
        shape: the shape of the array, ``(n_vectors, 2P)`` or ``(n_vectors, L + 1, 2P)``.
        dtype: its type.
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
            ids, texts, vectors = read_part(part, "id", TEXTS[level], "vectors")
            lengths += vectors.value_lengths().to_pylist()
            for _ in shape:
                vectors = vectors.flatten()
            vectors.to_numpy().tofile(file)
            for id, text in zip(ids.to_pylist(), texts.to_pylist(), strict=True):
                record = {"id": id, TEXTS[level]: text}
                lines.write(json.dumps(record, ensure_ascii=False) + "\n")
        np.save(offsets_file, np.cumsum([0, *lengths], dtype=np.int64))
