"""From a ``weights`` setting (a name, a directory, a zip, or two files) to the weights."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from ..bilm.model import BiLM
from ..util.files import present_directory
from .catalogue import download_hint, downloaded_names, find_downloaded
from .layout import CONFIG, OPTIONS, WEIGHTS, Weights, refuse_others
from .native import NativeWeights
from .published.weights import PublishedWeights
from .zips import open_zip

GROUP = "spacy_elmo_weights"  # of entry points
EMBEDDED = Path(__file__).parent.parent / "models"
EXPECTED = (
    f"A directory of weights has {CONFIG} and {WEIGHTS}, or, as published, {OPTIONS} and one "
    f".hdf5 file."
)

Setting = str | Path | Sequence[str | Path] | Weights


class WeightsNotFoundError(ValueError):
    """There is nothing where weights should be; a saved pipeline does not need it."""


def find_weights(setting: Setting) -> Weights:
    """The weights that a setting names; no tensor is read.

    A package installs weights by an entry point of the group `GROUP`, whose name is theirs and
    whose value is the module (``__init__.py``) of their directory.

    Args:
        setting: an embedded, installed or downloaded name; a directory of the native layout or the
            published one; a zip with the published files; or a list of two paths, an
            ``options.json`` and an HDF5 file; or `Weights`, which are returned as they are.

    Raises:
        WeightsNotFoundError: there is none of these.
        ValueError: the model is of another kind; the message names what was found.
    """
    if isinstance(setting, Weights):
        return setting
    try:
        if isinstance(setting, str | Path):
            return _find(setting)
        return _find(setting[0]) if len(setting) == 1 else _two_files(list(map(Path, setting)))
    except OSError as error:
        raise WeightsNotFoundError(f"Cannot read the ELMo weights {setting!r}: {error}") from error


def _find(setting: str | Path) -> Weights:
    name = str(setting)
    if name in (embedded := _embedded()):
        return NativeWeights(embedded[name])
    if name in (installed := _installed_modules()):
        return _installed(name, installed[name])
    path = present_directory(find_downloaded(name) or Path(setting))
    if path.is_dir():
        return _in_directory(path)
    if path.is_file():
        return _in_file(path)
    raise WeightsNotFoundError(
        download_hint(name)
        or f"Cannot find the ELMo weights {name!r}: there is no such file or directory, and the "
        f"embedded, installed and downloaded weights are {known_names()}. Set 'weights' to one of "
        f"these names, to a directory or a zip of weights, or to a list of two paths. {EXPECTED}"
    )


def known_names(lang: str | None = None) -> list[str]:
    """The names of embedded, installed and downloaded weights, all or those of a language."""
    names = sorted({*_embedded(), *_installed_modules(), *downloaded_names()})
    return names if lang is None else [name for name in names if _lang(name) == lang]


def _lang(name: str) -> object:
    """The language on the card of weights; None if it says none, or they are damaged."""
    with suppress(ValueError):
        return find_weights(name).card().meta.get("lang")
    return None


def _embedded() -> dict[str, Path]:
    return {file.parent.name: file.parent for file in EMBEDDED.glob(f"*/{CONFIG}")}


def _installed_modules() -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=GROUP)}


def load_bilm(setting: Setting) -> BiLM:
    """The biLM that a setting names, in float32, in evaluation mode.

    Raises:
        ValueError: see `find_weights` and `Weights.load`.
    """
    return find_weights(setting).load()


def _installed(name: str, module: str) -> Weights:
    spec = None
    with suppress(ModuleNotFoundError):  # of a package around it
        spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ValueError(
            f"The package that brings the ELMo weights '{name}' is damaged: it has no module "
            f"'{module}'. Reinstall it."
        )
    return NativeWeights(Path(spec.origin).parent)


def _in_directory(path: Path) -> Weights:
    refuse_others(str(path), [file.name for file in path.iterdir()])
    if (path / CONFIG).is_file():
        return NativeWeights(path)
    if (path / OPTIONS).is_file():
        return PublishedWeights.in_folder(path, str(path))
    raise WeightsNotFoundError(
        f"'{path}' has no {CONFIG}, so it is no directory of weights. {EXPECTED}"
    )


def _in_file(path: Path) -> Weights:
    if zipfile.is_zipfile(path):
        return PublishedWeights.in_folder(open_zip(path, OPTIONS), str(path))
    raise ValueError(
        f"'{path}' is neither a directory of weights nor a zip of them; a zip may be incomplete. "
        f'{EXPECTED} Of two files give both: weights = ["options.json", "weights.hdf5"].'
    )


def _two_files(paths: list[Path]) -> Weights:
    options = [path for path in paths if path.suffix == ".json"]
    others = [path for path in paths if path.suffix != ".json"]
    if len(options) != 1 or len(others) != 1 or others[0].name == WEIGHTS:
        raise ValueError(
            f"Weights given as a list are two files, an options.json and an HDF5 file; found "
            f"{list(map(str, paths))}. Of {CONFIG} and {WEIGHTS} give the directory."
        )
    for path in paths:
        if not path.is_file():
            raise WeightsNotFoundError(f"Cannot find the file '{path}' of the ELMo weights.")
    return PublishedWeights(options[0], others[0])
