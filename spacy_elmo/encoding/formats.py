"""The files that vectors are written to: Parquet, HDF5, NumPy and DocBin."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from spacy.tokens import DocBin

from ..util.files import atomic_file
from ..util.settings import check_choice
from ..weights.convert.hdf5 import import_h5py
from .block import Block, import_pyarrow

SUFFIXES = {
    ".parquet": "parquet", ".hdf5": "hdf5", ".h5": "hdf5", ".npy": "npy", ".spacy": "docbin"
}  # fmt: skip


def check_format(name: str | None, out: Path, default: str | None = None) -> str:
    """The format to write: the given one, else by the suffix of the file.

    Args:
        name: the one given, if any.
        out: the file.
        default: for other suffixes.

    Raises:
        ValueError: the format or the suffix is unknown, or needs a library that is not installed.
    """
    name = name or SUFFIXES.get(out.suffix, default)
    if name is None:
        raise ValueError(
            f"The format of '{out}' is unknown: end its name in {', '.join(SUFFIXES)}, or give "
            f"--format."
        )
    check_choice("The format", name, WRITERS)
    if name == "parquet":
        import_pyarrow(str(out))
    if name == "hdf5":
        import_h5py(str(out))
    return name


def output_files(name: str, out: Path) -> list[Path]:
    """The files that a format consists of."""
    if name != "npy":
        return [out]
    stem = str(out).removesuffix(".npy")
    return [out, Path(f"{stem}.offsets.npy"), Path(f"{stem}.tokens.jsonl")]


def write_parquet(out: Path, parts: Sequence[Path]) -> None:
    """Columns ``id``, ``tokens`` and ``vectors``; a row group for each part."""
    parquet = import_pyarrow(str(out)).parquet
    with ExitStack() as stack:
        temporary = stack.enter_context(atomic_file(out))
        writer = None
        for part in parts:
            table = Block.load(part).to_arrow()
            if writer is None:  # floats hardly compress, and no two vectors are equal
                writer = parquet.ParquetWriter(temporary, table.schema, use_dictionary=False)
                stack.enter_context(writer)
            if len(table):
                writer.write_table(table)


class UnfailingFile(FileIO):
    """A file whose errors are raised by `check` alone: HDF5 crashes where a write fails."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        n_bytes = len(rest)
        try:
            while rest and self.error is None:
                rest = rest[super().write(rest) :]
        except OSError as error:
            self.error = error
        return n_bytes

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0

    def check(self) -> None:
        """Raise the first error, if there was one."""
        if self.error is not None:
            raise self.error


def write_hdf5(out: Path, parts: Sequence[Path]) -> None:
    """A dataset for each row, named by its index as a string; ``sentence_to_index`` has a JSON
    object from tokens, separated by spaces, to these names.

    Of shape ``(n, 2P)`` or, with all layers, ``(L + 1, n, 2P)``: as AllenNLP's ``elmo`` command
    writes them, and bilm-tf's ``dump_bilm_embeddings``.
    """
    h5py = import_h5py(str(out))
    names: dict[str, str] = {}
    with atomic_file(out) as temporary, UnfailingFile(temporary, "w+") as raw:
        with h5py.File(raw, "w") as file:
            for part in parts:
                for _, tokens, vectors in Block.load(part).rows():
                    n = str(len(file))
                    file.create_dataset(n, data=np.moveaxis(vectors, 0, -2))
                    names[" ".join(tokens)] = n
                raw.check()
            index = file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())
            index[0] = json.dumps(names)
        raw.check()


def write_npy(out: Path, parts: Sequence[Path]) -> None:
    """The vectors of all rows in one array ``(N, 2P)`` or ``(N, L + 1, 2P)``, to be mapped into
    memory; beside it, in ``….offsets.npy``, where each row starts, ``(n_rows + 1,)``, and in
    ``….tokens.jsonl`` the ``id`` and ``tokens`` of each row.
    """
    lengths = [np.diff(Block.load(part, with_vectors=False).offsets) for part in parts]
    offsets = np.cumsum([0, *np.concatenate(lengths)], dtype=np.int64)
    first = Block.load(parts[0]).vectors
    files = output_files("npy", out)
    with ExitStack() as stack:
        array_file, offsets_file, tokens_file = (stack.enter_context(atomic_file(f)) for f in files)
        with open(offsets_file, "wb") as file:
            np.save(file, offsets)
        shape = (int(offsets[-1]), *first.shape[1:])
        with open(array_file, "wb") as file:
            header = {"descr": first.dtype.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            with open(tokens_file, "w", encoding="utf-8", newline="\n") as lines:
                for part in parts:
                    block = Block.load(part)
                    block.vectors.tofile(file)
                    for id, tokens in zip(block.ids, block.tokens, strict=True):
                        row = {"id": id, "tokens": tokens}
                        lines.write(json.dumps(row, ensure_ascii=False) + "\n")


def write_docbin(out: Path, parts: Sequence[Path]) -> None:
    """One DocBin, Docs with ``._.elmo`` or ``._.elmo_layers`` in their user data."""
    merged = DocBin(store_user_data=True)
    for part in parts:
        merged.merge(DocBin(store_user_data=True).from_bytes(Block.load(part).docs))
    with atomic_file(out) as temporary:
        merged.to_disk(temporary)


WRITERS: dict[str, Callable[[Path, Sequence[Path]], None]] = {
    "parquet": write_parquet,
    "hdf5": write_hdf5,
    "npy": write_npy,
    "docbin": write_docbin,
}
