"""Published weights by name, and the folder for downloaded weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..about import __uri__, __version__
from ..util.files import OLD, read_json
from .layout import WEIGHTS

CACHE_VARIABLE = "SPACY_ELMO_CACHE"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # a visible folder inside the cache folder

# By name: ``urls``, of an options.json and an HDF5 file or of a zip (the project's own weights have
# none, see `addresses`); ``lang``, spaCy's code; ``text``, what they were trained on;
# ``megabytes``, the size of the download, if it is known.
PUBLISHED: dict[str, dict[str, Any]] = read_json(Path(__file__).with_name("published.json"))

# The release of this version has a zip for each folder in project/weights.
RELEASE = f"{__uri__}/releases/download/v{__version__}" if __uri__ else ""


def addresses(name: str) -> list[str]:
    """The addresses of weights in `PUBLISHED`. Before the first release, the project's own weights
    have none."""
    if urls := PUBLISHED[name].get("urls"):
        return list(urls)
    return [f"{RELEASE}/{name}.zip"] if RELEASE else []


def cache_folder() -> Path:
    """The folder for downloaded weights: `CACHE_VARIABLE`, or the system's cache folder."""
    import pooch

    return pooch.utils.cache_location(pooch.os_cache("spacy-elmo"), CACHE_VARIABLE)


def downloaded() -> list[str]:
    """The names of downloaded weights, also of those that a killed download was replacing."""
    begin, end = OLD.split("{}")
    folders = (file.parent.name for file in cache_folder().glob(f"*/{WEIGHTS}"))
    return sorted({name.removeprefix(begin).removesuffix(end) for name in folders})
