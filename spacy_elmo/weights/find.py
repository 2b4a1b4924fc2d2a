"""Finds weights by their name or their directory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from ..bilm.model import BiLM
from ..util.files import present_directory
from .catalogue import NAME, PUBLISHED, addresses, cache_folder, downloaded
from .layout import CONFIG, WEIGHTS
from .native import Weights
from .saved import installed_pipeline, weights_in

EMBEDDED = Path(__file__).parent.parent / "models"

WeightsLike = str | Path | Weights


class WeightsNotFoundError(ValueError):
    """There are no weights where they should be. A saved pipeline does not need them there."""


def find_weights(weights: WeightsLike) -> Weights:
    """Find weights; no tensor is read.

    Args:
        weights: the name of embedded or downloaded weights, or of an installed pipeline with a
            component `elmo`; a directory of weights in our format, of such a pipeline, or of one
            saved elmo component (any name); or `Weights`, which are returned. A ``str`` is a name
            first, with a warning if there is such a path, too. A ``Path`` is never a name.

    Raises:
        WeightsNotFoundError: there are no such weights. For a path to another format, the message
            has the command that converts it.
        ValueError: the argument is no name or path.
    """
    if isinstance(weights, Weights):
        return weights
    refuse_lists(weights)
    if not isinstance(weights, str | Path):
        raise ValueError(f"The weights are {weights!r}. Give a name or a directory.")
    try:
        path = find_name(weights) or present_directory(Path(weights))
        if (path / WEIGHTS).is_file():
            return Weights(path)
        if saved := weights_in(path):
            return saved
        if path.exists():
            raise unknown_format_error([weights])
    except OSError as error:
        raise WeightsNotFoundError(f"Cannot read the ELMo weights {weights!r}: {error}") from error
    name, advice = str(weights), ""
    if weights in PUBLISHED and "urls" not in PUBLISHED[name]:
        advice = f", as project/weights/{name} in a clone of the repository is"
    if "://" in name or (weights in PUBLISHED and addresses(name)):
        advice += f", or run: python -m spacy elmo download {name}"
    what = "" if to_config(weights) == name else " (a Path is not taken as a name)"
    names = [*sorted(file.parent.name for file in EMBEDDED.glob(f"*/{CONFIG}")), *downloaded()]
    raise WeightsNotFoundError(
        f"Cannot find the ELMo weights {name!r}{what}: there is no such directory and no "
        f"installed pipeline, and the embedded and downloaded ones are {names}. Set 'weights' to "
        f"one of these, or to a directory with {CONFIG} and {WEIGHTS}{advice}."
    )


def find_name(name: str | Path) -> Path | None:
    """The `path_of_name` of a ``str``, with a warning if there is such a path, too."""
    path = path_of_name(name) if isinstance(name, str) else None
    if path is not None:
        warn_of_path(name, path)
    return path


def path_of_name(name: str) -> Path | None:
    """The directory of embedded or downloaded weights, or of an installed pipeline."""
    if not NAME.fullmatch(name):
        return None
    if (EMBEDDED / name / WEIGHTS).is_file():
        return EMBEDDED / name
    there = present_directory(cache_folder() / name)
    return there if (there / WEIGHTS).is_file() else installed_pipeline(name)


def warn_of_path(name: str | Path, found: Path) -> None:
    """Warn if a path with this name is not the one that was found by the name."""
    path = Path(name)
    if path.exists() and not found.resolve().is_relative_to(path.resolve()):
        warnings.warn(
            f"'{name}' is taken as a name, of '{found}', but there is a path '{name}', too. For "
            f"that, write './{name}'.",
            stacklevel=2,
        )


def to_config(weights: WeightsLike) -> str:
    """Weights as a config names them: a path that looks like a name gets ``./`` before it."""
    path = weights.path if isinstance(weights, Weights) else weights
    is_like_name = isinstance(path, Path) and NAME.fullmatch(str(path))
    return f"./{path}" if is_like_name else str(path)


def refuse_lists(weights: object) -> None:
    """Raise `unknown_format_error` for several paths, as for published weights."""
    if isinstance(weights, list | tuple):
        raise unknown_format_error(weights)


def unknown_format_error(files: Sequence[str | Path]) -> ValueError:
    """The error for paths to another format, with the command that converts it."""
    paths = [str(path) for path in files]
    path = Path(paths[-1] if paths else "")
    name = Path(os.path.abspath(path)).stem or "weights"  # the working directory has a name, too
    out = str(path.parent / f"{name}-converted")
    is_half = len(paths) == 1 and path.suffix in (".json", ".hdf5", ".h5")
    given = [str(path.parent)] if is_half else paths
    return WeightsNotFoundError(
        f"{' and '.join(map(repr, paths)) or 'An empty list'} is no directory with {CONFIG} and "
        f"{WEIGHTS}, and no pipeline with a component 'elmo'. Give a name or such a directory, or "
        f"that of an elmo component of another name; an options.json with its HDF5 file (which "
        f"bin/dump_weights.py of bilm-tf makes of a TensorFlow checkpoint), also in a directory or "
        f"a zip, or a directory of ELMoForManyLangs, is converted once with: python -m spacy elmo "
        f"convert "
        f'{" ".join(map(quote, [*given, out]))} and then set weights = "{out}".'
    )


def load_bilm(weights: WeightsLike) -> BiLM:
    """Load a biLM in float32, in evaluation mode.

    Raises:
        ValueError: see `find_weights` and `Weights.load`.
    """
    return find_weights(weights).load()
