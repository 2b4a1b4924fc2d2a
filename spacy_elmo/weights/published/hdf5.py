"""Named datasets of an HDF5 file; nothing else in the file is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...util.files import reading
from ...util.optional_imports import import_extra

if TYPE_CHECKING:
    from importlib.abc import Traversable

MAX_RATIO = 1100  # deflate packs no better


def import_h5py(file: str) -> Any:
    """The library that reads and writes HDF5, from the extra that brings it.

    Args:
        file: the one to read or write, for the error message.
    """
    return import_extra("h5py", "hdf5", "HDF5 needs h5py", file)


@contextmanager
def open_datasets(
    local: Callable[[], Path | IO[bytes]], source: Traversable, names: Iterable[str]
) -> Iterator[dict[str, Any]]:
    """Those of some datasets that a file has, by their full names.

    Args:
        local: returns the path of the file on disk, or the open file.
        source: the file, perhaps in a zip.
        names: of the datasets.

    Raises:
        ValueError: the file is damaged, or one of the datasets is stored elsewhere.
    """
    h5py = import_h5py(str(source))
    found = local()
    with reading("the HDF5 file", source):
        file = h5py.File(found, "r")
    with file:
        with reading("the HDF5 file", source):
            datasets = {name: _find(h5py, file, name) for name in names}
        yield {name: dataset for name, dataset in datasets.items() if dataset is not None}


def _find(h5py: Any, file: Any, name: str) -> Any:
    """A dataset by its full name, None if there is none.

    No link is followed: it may lead to another file, and opening a pipe would never end.
    """
    item = file
    for key in name.split("/"):
        if not isinstance(item, h5py.Group) or not item.id.links.exists(key.encode()):
            return None
        if item.id.links.get_info(key.encode()).type != h5py.h5l.TYPE_HARD:
            raise _stored_elsewhere(name)
        item = item[key]
    if not isinstance(item, h5py.Dataset):
        return None
    if item.external or item.is_virtual:
        raise _stored_elsewhere(name)
    n_bytes, stored = (item.size or 0) * item.id.get_type().get_size(), item.id.get_storage_size()
    if n_bytes > MAX_RATIO * stored:
        raise ValueError(
            f"'{name}' claims {n_bytes:,} bytes, but the file has {stored:,} of them. It may be "
            f"incomplete"
        )
    return item


def _stored_elsewhere(name: str) -> ValueError:
    return ValueError(
        f"'{name}' is a link or stored in another file, which is not read. Write a file that "
        f"contains all of the weights"
    )
