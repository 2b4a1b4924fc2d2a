"""Named datasets of an HDF5 file; nothing else in the file is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...util.files import reading
from ...util.optional_imports import import_extra

MAX_RATIO = 1100  # deflate packs no better


def import_h5py(file: str) -> Any:
    """The library that reads and writes HDF5, from the extra that brings it.

    Args:
        file: the one to read or write, for the error message.
    """
    return import_extra("h5py", "hdf5", "HDF5 needs h5py", file)


@contextmanager
def open_datasets(file: Path, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Those of some datasets that a file has, by their full names.

    Args:
        file: its path.
        names: of the datasets.

    Raises:
        ValueError: the file is damaged, or one of the datasets is stored elsewhere.
    """
    h5py = import_h5py(str(file))
    with reading("the HDF5 file", file):
        opened = h5py.File(file, "r")
    with opened:
        with reading("the HDF5 file", file):
            datasets = {name: _find(h5py, opened, name) for name in names}
        yield {name: dataset for name, dataset in datasets.items() if dataset is not None}


def _find(h5py: Any, file: Any, name: str) -> Any:
    """A dataset by its full name, None if there is none.

    No link is followed: it may lead to another file, and opening a pipe would never end.
    """
    elsewhere = ValueError(f"'{name}' is a link or stored in another file, which is not read")
    item = file
    for key in name.split("/"):
        link = item.get(key, getclass=True, getlink=True) if isinstance(item, h5py.Group) else None
        if link is None:
            return None
        if link is not h5py.HardLink:
            raise elsewhere
        item = item[key]
    if not isinstance(item, h5py.Dataset):
        return None
    if item.external or item.is_virtual:
        raise elsewhere
    n_bytes, stored = (item.size or 0) * item.id.get_type().get_size(), item.id.get_storage_size()
    if n_bytes > MAX_RATIO * stored:
        raise ValueError(f"'{name}' claims {n_bytes:,} bytes, but the file has {stored:,} of them")
    return item
