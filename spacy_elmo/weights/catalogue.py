"""Published weights that have a name, and the user's folder of downloaded ones."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..about import __uri__, __version__
from ..util.files import OLD, read_json
from .layout import WEIGHTS

CACHE_VARIABLE = "SPACY_ELMO_CACHE"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # one folder, visible, inside the cache folder

# By name: ``urls`` of an options.json and an HDF5 file, or of a zip (not of the project's own: see
# `addresses`); ``lang``, as spaCy's code; ``text`` that they were trained on; ``megabytes`` of the
# download, as far as they are known.
PUBLISHED: dict[str, dict[str, Any]] = read_json(Path(__file__).with_name("published.json"))

# Where the release of this version has a zip of each folder of project/weights.
RELEASE = f"{__uri__}/releases/download/v{__version__}" if __uri__ else ""


def addresses(name: str) -> list[str]:
    """The addresses of the files of weights in `PUBLISHED`; none of the project's own before its
    first release."""
    if urls := PUBLISHED[name].get("urls"):
        return list(urls)
    return [f"{RELEASE}/{name}.zip"] if RELEASE else []


def cache_folder() -> Path:
    """The folder of downloaded weights: `CACHE_VARIABLE`, or where the system has such folders."""
    import pooch

    return pooch.utils.cache_location(pooch.os_cache("spacy-elmo"), CACHE_VARIABLE)


def downloaded() -> list[str]:
    """The names of downloaded weights, also of those that a killed download was about to replace;
    other folders may lie beside them."""
    begin, end = OLD.split("{}")
    folders = (file.parent.name for file in cache_folder().glob(f"*/{WEIGHTS}"))
    return sorted({name.removeprefix(begin).removesuffix(end) for name in folders})
