"""Published weights that have a name, and the user's folder of downloaded ones."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ..util.files import present_directory, read_json
from .layout import WEIGHTS

CACHE_VARIABLE = "SPACY_ELMO_CACHE"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # one folder, visible, inside the cache folder


@dataclass(frozen=True)
class Published:
    """Weights that have a name.

    Attributes:
        urls: of an ``options.json`` and an HDF5 file, or of a zip.
        lang: their language, as spaCy's code.
        text: what they were trained on.
        megabytes: size of the download, as far as it is known.
    """

    urls: list[str]
    lang: str
    text: str
    megabytes: int | None = None


PUBLISHED = {
    name: Published(**known)
    for name, known in read_json(Path(__file__).with_name("published.json")).items()
}


def cache_folder() -> Path:
    """The folder of downloaded weights: `CACHE_VARIABLE`, or where the system has such folders."""
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE]).expanduser()
    import pooch

    return Path(pooch.os_cache("spacy-elmo"))


def find_downloaded(name: str) -> Path | None:
    """The directory of downloaded weights, or None if there are none of this name."""
    if not NAME.fullmatch(name):
        return None
    path = present_directory(cache_folder() / name)
    return path if path.is_dir() else None


def downloaded_names() -> list[str]:
    """The names of all downloaded weights; other folders may lie beside them."""
    found = {file.parent.name for file in cache_folder().glob(f"*/{WEIGHTS}")}
    return sorted(filter(NAME.fullmatch, found))
