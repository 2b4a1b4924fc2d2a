"""The files that vectors are written to: Parquet, HDF5 and NumPy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..util.files import atomic_file, reading
from ..util.optional_imports import import_extra
from .encoded_rows import EncodedRows

PARQUET = ".parquet"  # a directory of its parts
HDF5_BYTES = 2048  # of a row's dataset, beside its vectors and its tokens, at most


def check_suffix(out: Path) -> None:
    """Raise a ValueError if the suffix of a file tells no format, or one that needs a library that
    is not installed."""
    import_parquet(out)  # in which parts are written
    if out.suffix not in (PARQUET, *WRITERS):
        raise ValueError(
            f"The format of '{out}' is unknown: end its name in {PARQUET}, {', '.join(WRITERS)}."
        )
    if out.suffix == ".hdf5":
        import_h5py(out)


def import_parquet(file: Path) -> Any:
    need = "parts are written as Parquet, which needs pyarrow"
    return import_extra("pyarrow.parquet", "parquet", need, str(file))


def import_h5py(out: Path) -> Any:
    return import_extra("h5py", "hdf5", "HDF5 needs h5py", str(out))


def output_files(out: Path) -> list[Path]:
    """All that is written for an output, itself the last."""
    beside = [".offsets.npy", ".tokens.jsonl"] * (out.suffix == ".npy")
    return [*map(out.with_suffix, beside), out]


def to_arrow(rows: EncodedRows) -> Any:
    """An Arrow table with the columns ``id``, ``tokens`` (strings) and ``vectors``.

    ``vectors`` has one element for each of ``tokens``: a list of 2P floats, or with all layers
    L + 1 lists of them. These are Arrow's large lists: a long text has more than 2³¹ floats.
    """
    pa = import_module("pyarrow")
    values = pa.array(rows.vectors.reshape(-1))
    for length in reversed(rows.vectors.shape[1:]):
        offsets = np.arange(0, len(values) + 1, length, dtype=np.int64)
        values = pa.LargeListArray.from_arrays(pa.array(offsets), values)
    columns = {
        "id": pa.array(rows.ids, pa.int64()),
        "tokens": pa.array(rows.tokens, pa.list_(pa.string())),
        "vectors": pa.LargeListArray.from_arrays(pa.array(rows.offsets), values),
    }
    return pa.table(columns)


def write_part(rows: EncodedRows, path: Path) -> None:
    """Write rows to a Parquet file, whole or not at all."""
    parquet = import_parquet(path)
    with atomic_file(path) as temporary:  # no two vectors are equal
        parquet.write_table(to_arrow(rows), temporary, use_dictionary=False)


def read_part(path: Path, *columns: str) -> Any:
    """The columns of a table that `write_part` has written, each an Arrow array.

    Raises:
        ValueError: the file is damaged.
    """
    with reading("the part, which can be removed to encode it again,", path):
        table = import_parquet(path).read_table(path, columns=list(columns))
        return [table[name].combine_chunks() for name in columns]


def count_part(path: Path) -> tuple[int, int]:
    """The numbers of rows and of vectors in a part."""
    [tokens] = read_part(path, "tokens")
    return len(tokens), len(tokens.flatten())


def rows_of_part(path: Path, shape: tuple[int, ...]) -> EncodedRows:
    """The rows of a part.

    Args:
        path: of the file.
        shape: of a vector.
    """
    ids, tokens, values = read_part(path, "id", "tokens", "vectors")
    for _ in ("rows", *shape):
        values = values.flatten()
    return EncodedRows(ids.to_pylist(), tokens.to_pylist(), values.to_numpy().reshape(-1, *shape))


def write_hdf5(
    out: Path, parts: Iterable[EncodedRows], shape: tuple[int, ...], dtype: str, n_rows: int
) -> None:
    """A dataset for each row, named by its index as a string; ``sentence_to_index`` has a JSON
    object from tokens, separated by spaces, to these names.

    Of shape ``(n, 2P)`` or, with all layers, ``(L + 1, n, 2P)``: as AllenNLP's ``elmo`` command
    writes them, and bilm-tf's ``dump_bilm_embeddings``.
    """
    h5py = import_h5py(out)
    names: dict[str, str] = {}
    with atomic_file(out) as temporary:
        if hasattr(os, "posix_fallocate"):  # HDF5 crashes where it cannot write: checked before
            n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize + n_rows * HDF5_BYTES
            with open(temporary, "wb") as reserved:
                os.posix_fallocate(reserved.fileno(), 0, n_bytes + HDF5_BYTES)
        with h5py.File(temporary, "w") as file:
            for part in parts:
                for _, tokens, vectors in part:
                    n = str(len(file))
                    file.create_dataset(n, data=np.moveaxis(vectors, 0, -2))
                    names[" ".join(tokens)] = n
            index = file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())
            index[0] = json.dumps(names)


def write_npy(
    out: Path, parts: Iterable[EncodedRows], shape: tuple[int, ...], dtype: str, n_rows: int
) -> None:
    """The vectors of all rows in one array ``(N, 2P)`` or ``(N, L + 1, 2P)``, to be mapped into
    memory; beside it, in ``….offsets.npy``, where each row starts, ``(n_rows + 1,)``, and in
    ``….tokens.jsonl`` the ``id`` and ``tokens`` of each row.
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
            for id, tokens in zip(part.ids, part.tokens, strict=True):
                line = json.dumps({"id": id, "tokens": tokens}, ensure_ascii=False)
                lines.write(line + "\n")
                lengths.append(len(tokens))
        np.save(offsets_file, np.cumsum([0, *lengths], dtype=np.int64))


WRITERS: dict[str, Callable[..., None]] = {".npy": write_npy, ".hdf5": write_hdf5}
