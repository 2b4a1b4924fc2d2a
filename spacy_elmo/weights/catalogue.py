"""Published weights that have a name, and the user's folder of downloaded ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..util.files import OLD, present_directory, read_json
from .layout import WEIGHTS

CACHE_VARIABLE = "SPACY_ELMO_CACHE"

# By name: ``urls`` of an options.json and an HDF5 file, or of a zip; ``lang``, as spaCy's code;
# ``text`` that they were trained on; ``megabytes`` of the download, as far as they are known.
PUBLISHED: dict[str, dict[str, Any]] = read_json(Path(__file__).with_name("published.json"))


def cache_folder() -> Path:
    """The folder of downloaded weights: `CACHE_VARIABLE`, or where the system has such folders."""
    import pooch

    return pooch.utils.cache_location(pooch.os_cache("spacy-elmo"), CACHE_VARIABLE)


def downloaded() -> dict[str, Path]:
    """The directories of downloaded weights by name, also of those that a killed download was
    about to replace; other folders may lie beside them."""
    begin, end = OLD.split("{}")
    names = {path.name.removeprefix(begin).removesuffix(end) for path in cache_folder().glob("*")}
    found = {name: present_directory(cache_folder() / name) for name in sorted(names)}
    return {name: path for name, path in found.items() if (path / WEIGHTS).is_file()}
