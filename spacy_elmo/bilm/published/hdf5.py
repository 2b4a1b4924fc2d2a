"""Reads HDF5 files safely; whatever is wrong with one becomes one error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..base_weights import check_regular
from ..extras import import_extra

MAX_RATIO = 1100  # deflate packs no better


def import_h5py(file: str) -> Any:
    """The library that reads and writes HDF5, from the extra that brings it.

    Args:
        file: the one to read or write, for the error message.
    """
    return import_extra("h5py", "hdf5", "HDF5 needs h5py", file)


@contextmanager
def open_datasets(
    local: Callable[[], Path | IO[bytes]], source: str
) -> Iterator[Mapping[str, Any]]:
    """The datasets of a file by their full names; each is read when it is indexed.

    Args:
        local: gives the file's path, or the open file.
        source: the file's name for error messages.

    Raises:
        ValueError: the file is damaged, or links to other files or around in circles.
    """
    h5py = import_h5py(source)
    found = local()
    if isinstance(found, Path):
        check_regular(found)
    with _intact(source):
        file = h5py.File(found, "r")
    with file:
        with _intact(source):
            datasets = dict(_collect(h5py, file, source))
        yield datasets


def _collect(
    h5py: Any, group: Any, source: str, prefix: str = "", around: Sequence[Any] = ()
) -> Iterator[tuple[str, Any]]:
    around = [*around, group]
    for key in group:
        name, item = f"{prefix}{key}", group.get(key)  # None if it is a link to nowhere
        if not isinstance(item, h5py.Group | h5py.Dataset):
            continue
        is_data = isinstance(item, h5py.Dataset)
        outside = item.file.filename != group.file.filename
        if outside or (is_data and (item.external or item.is_virtual)):
            raise ValueError(
                f"{source}: '{name}' is stored in another file, which is not read. Write a file "
                f"that contains all of the weights."
            )
        if is_data:
            n_bytes = (item.size or 0) * item.id.get_type().get_size()
            stored = item.id.get_storage_size()
            if n_bytes > MAX_RATIO * stored:
                raise ValueError(
                    f"{source}: '{name}' claims {n_bytes:,} bytes, but the file has {stored:,} of "
                    f"them. The file may be incomplete."
                )
            yield name, _Dataset(item, source)
        elif item in around:
            raise ValueError(
                f"{source}: '{name}' is a link to a group that it lies in, so the names form a "
                f"circle. Write a file without that link."
            )
        else:
            yield from _collect(h5py, item, source, f"{name}/", around)


class _Dataset:
    """An open dataset whose errors name the file."""

    def __init__(self, dataset: Any, source: str):
        self._dataset, self._source = dataset, source

    @property
    def shape(self) -> Any:
        return self._dataset.shape

    @property
    def dtype(self) -> Any:
        return self._dataset.dtype

    def __getitem__(self, part: Any) -> Any:
        with _intact(self._source):
            return self._dataset[part]


@contextmanager
def _intact(source: str) -> Iterator[None]:
    """Whatever HDF5 raises for a broken file becomes one error."""
    try:
        yield
    except (OSError, RuntimeError, KeyError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{source}: cannot be read as HDF5, it may be incomplete or damaged ({error})."
        ) from error
