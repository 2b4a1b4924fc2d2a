"""Weights in a zip: found, and unpacked one file at a time."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import IO

from ..util.files import reading
from .layout import CONFIG, MODEL, WEIGHTS, refuse_others

# Weights pack to about nine tenths; what packs to almost nothing fills the disk.
MAX_UNPACKED, MAX_PACKED_RATIO = 2**28, 20


def open_zip(path: Path, *wanted: str) -> zipfile.Path:
    """The folder in a zip, or its top, that has a file of one of these names.

    The names in a zip never decide where a file is unpacked.

    Raises:
        ValueError: it is damaged, has names that lead out of it, has none of the files, or several
            in different folders, or is a model of another kind.
    """
    with reading("the zip", path):
        archive = zipfile.ZipFile(path)
        names = [name.replace("\\", "/").rstrip("/") for name in archive.namelist()]
        for name in names:  # older Pythons look for ever for the folder of //…
            if {"", ".."} & set(name.split("/")):
                raise ValueError(f"the name {name!r} in it leads out of it")
    refuse_others(str(path), [name.rpartition("/")[2] for name in names])
    root = zipfile.Path(archive)
    folders = [root, *(folder for folder in root.iterdir() if folder.is_dir())]
    found = [f for f in folders if any(f.joinpath(name).is_file() for name in wanted)]
    if not found and any(
        all(folder.joinpath(name).is_file() for name in (CONFIG, WEIGHTS)) for folder in folders
    ):
        raise ValueError(
            f"'{path}' is a zip of {CONFIG} and {WEIGHTS}, which are read from a directory: unpack "
            f"it, and give the directory."
        )
    if len(found) != 1:
        raise ValueError(
            f"'{path}' has {'several' if found else 'no'} {' or '.join(wanted)}, at its top or in "
            f"a folder there; a zip of weights has one, beside {MODEL} or {WEIGHTS}."
        )
    return found[0]


def unpack(member: zipfile.Path, to: IO[bytes]) -> None:
    """Write the content of a file in a zip.

    Raises:
        ValueError: it is packed better than weights can be.
    """
    info = member.root.getinfo(member.at)
    if info.file_size > MAX_UNPACKED + MAX_PACKED_RATIO * info.compress_size:
        raise ValueError(
            f"'{info.filename}' would unpack to {info.file_size:,} bytes, far more than its "
            f"{info.compress_size:,} can contain. Unpack it yourself to use it anyway"
        )
    with member.open("rb") as packed:
        shutil.copyfileobj(packed, to, 2**20)
