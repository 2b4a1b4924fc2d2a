"""What several of the tests in this folder need."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.weights.convert.source import read_source


def read(*given: str | Path) -> BiLM:
    """The biLM that `elmo convert` reads."""
    source = read_source(given)
    return source.model


def fails(given: str | Path | list[Path], *parts: Any) -> None:
    """Converting raises a ValueError that says all this, and the path that was given."""
    paths = given if isinstance(given, list) else [given]
    with pytest.raises(ValueError) as error:
        read(*paths)
    for part in (*([] if isinstance(given, list) else paths), *parts):
        assert str(part) in str(error.value)
    assert f"{gettempdir()}/tmp" not in str(error.value)  # where zips are unpacked


def make_folder(path: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def make_zip(path: Any, files: Mapping[str, bytes], prefix: str = "") -> Any:
    """A zip at a path, or in an open file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"{prefix}{name}", content)
    return path
