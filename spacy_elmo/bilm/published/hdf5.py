"""Reads HDF5 files safely."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..files import reading
from ..optional_imports import import_extra

if TYPE_CHECKING:
    from importlib.abc import Traversable

MAX_RATIO = 1100  # deflate packs no better
KIND = "the HDF5 file"


def import_h5py(file: str) -> Any:
    """The library that reads and writes HDF5, from the extra that brings it.

    Args:
        file: the one to read or write, for the error message.
    """
    return import_extra("h5py", "hdf5", "HDF5 needs h5py", file)


@contextmanager
def open_datasets(
    local: Callable[[], Path | IO[bytes]], source: Traversable
) -> Iterator[Mapping[str, Any]]:
    """The datasets of a file by their full names; `read_dataset` reads one.

    Args:
        local: returns the path of the file on disk, or the open file.
        source: the file, perhaps in a zip.

    Raises:
        ValueError: the file is damaged, or links to other files or in a cycle.
    """
    h5py = import_h5py(str(source))
    found = local()
    with reading(KIND, source):
        file = h5py.File(found, "r")
    with file:
        with reading(KIND, source):
            datasets = dict(_collect(h5py, file))
        yield datasets


def _collect(
    h5py: Any, group: Any, prefix: str = "", parents: Sequence[Any] = ()
) -> Iterator[tuple[str, Any]]:
    parents = [*parents, group]
    for key in group:
        name, item = f"{prefix}{key}", group.get(key)  # None if it is a link to nowhere
        if not isinstance(item, h5py.Group | h5py.Dataset):
            continue
        is_data = isinstance(item, h5py.Dataset)
        outside = item.file.filename != group.file.filename
        if outside or (is_data and (item.external or item.is_virtual)):
            raise ValueError(
                f"'{name}' is stored in another file, which is not read. Write a file that "
                f"contains all of the weights"
            )
        if is_data:
            n_bytes = (item.size or 0) * item.id.get_type().get_size()
            stored = item.id.get_storage_size()
            if n_bytes > MAX_RATIO * stored:
                raise ValueError(
                    f"'{name}' claims {n_bytes:,} bytes, but the file has {stored:,} of them. It "
                    f"may be incomplete"
                )
            yield name, item
        elif item in parents:
            raise ValueError(
                f"'{name}' links to one of its own parent groups, so the names form a cycle. "
                f"Write a file without that link"
            )
        else:
            yield from _collect(h5py, item, f"{name}/", parents)
