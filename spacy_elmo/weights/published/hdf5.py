"""Reads HDF5 files safely."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...util.files import reading
from ...util.optional_imports import import_extra

if TYPE_CHECKING:
    from importlib.abc import Traversable

MAX_RATIO = 1100  # deflate packs no better
MAX_NAMES = 10_000  # published files have less than a hundred
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
        ValueError: the file is damaged, has far too many names, or links to other files or in a
            cycle.
    """
    h5py = import_h5py(str(source))
    found = local()
    with reading(KIND, source):
        file = h5py.File(found, "r")
    with file:
        with reading(KIND, source):
            _refuse_external_links(h5py, file)
            datasets = {}
            for number, (name, item) in enumerate(_collect(h5py, file)):
                if number == MAX_NAMES:
                    raise ValueError(
                        f"its groups and datasets have more than {MAX_NAMES:,} names. Write a file "
                        f"with the weights alone"
                    )
                if isinstance(item, h5py.Dataset):
                    datasets[name] = item
        yield datasets


def _refuse_external_links(h5py: Any, file: Any) -> None:
    """Raise a ValueError for a link to another file, before any link is followed: opening a pipe
    would never end, and soft links may lead through a link to another file."""
    groups = [file["/"]]
    seen = set(groups)
    while groups:
        group = groups.pop()
        for key in group:
            link = group.get(key, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                raise _outside(f"{group.name}/{key}".lstrip("/"))
            if isinstance(link, h5py.HardLink):
                item = group[key]
                if isinstance(item, h5py.Group) and item not in seen:
                    seen.add(item)
                    groups.append(item)


def _outside(name: str) -> ValueError:
    return ValueError(
        f"'{name}' is stored in another file, which is not read. Write a file that contains all "
        f"of the weights"
    )


def _collect(
    h5py: Any, group: Any, prefix: str = "", parents: Sequence[Any] = ()
) -> Iterator[tuple[str, Any]]:
    """What is in a group and the groups in it, by full names; datasets are checked right after."""
    parents = [*parents, group]
    for key in group:
        name, item = f"{prefix}{key}", group.get(key)  # None if it is a link to nowhere
        yield name, item
        if isinstance(item, h5py.Dataset):
            if item.external or item.is_virtual:
                raise _outside(name)
            n_bytes = (item.size or 0) * item.id.get_type().get_size()
            stored = item.id.get_storage_size()
            if n_bytes > MAX_RATIO * stored:
                raise ValueError(
                    f"'{name}' claims {n_bytes:,} bytes, but the file has {stored:,} of them. It "
                    f"may be incomplete"
                )
        elif isinstance(item, h5py.Group):
            if item in parents:
                raise ValueError(
                    f"'{name}' links to one of its own parent groups, so the names form a cycle. "
                    f"Write a file without that link"
                )
            yield from _collect(h5py, item, f"{name}/", parents)
