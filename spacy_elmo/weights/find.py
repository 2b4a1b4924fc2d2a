"""From a ``weights`` setting, a name or a directory, to the weights."""

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

Setting = str | Path | Weights


class WeightsNotFoundError(ValueError):
    """There is nothing where weights should be; a saved pipeline does not need it."""


def find_weights(setting: Setting) -> Weights:
    """The weights that a setting names; no tensor is read.

    Args:
        setting: the name of embedded or downloaded weights, or of an installed pipeline with a
            component `elmo`; a directory of our format, of such a pipeline, or of an elmo component
            of any name; or `Weights`, which are returned as they are. A ``str`` is a name first,
            with a warning where there is a path, too; a ``Path`` is no name.

    Raises:
        WeightsNotFoundError: there is none of these; the message for a path has the command that
            converts weights in another format.
        ValueError: it is no name or path.
    """
    if isinstance(setting, Weights):
        return setting
    refuse_lists(setting)
    if not isinstance(setting, str | Path):
        raise ValueError(f"The weights are {setting!r}. Give a name or a directory.")
    try:
        path = name_first(setting) or present_directory(Path(setting))
        if (path / WEIGHTS).is_file():
            return Weights(path)
        if weights := weights_in(path):
            return weights
        if path.exists():
            raise other_format([setting])
    except OSError as error:
        raise WeightsNotFoundError(f"Cannot read the ELMo weights {setting!r}: {error}") from error
    names = [*sorted(file.parent.name for file in EMBEDDED.glob(f"*/{CONFIG}")), *downloaded()]
    is_ours = setting in PUBLISHED and "urls" not in PUBLISHED[str(setting)]
    is_elsewhere = "://" in str(setting) or (setting in PUBLISHED and addresses(str(setting)))
    advice = f", or run: python -m spacy elmo download {setting}" if is_elsewhere else ""
    what = " (a Path is not taken as a name)" if as_setting(setting) != str(setting) else ""
    if is_ours:
        advice = f", as project/weights/{setting} in a clone of the repository is" + advice
    raise WeightsNotFoundError(
        f"Cannot find the ELMo weights {str(setting)!r}{what}: there is no such directory and no "
        f"installed pipeline, and the embedded and downloaded ones are {names}. Set 'weights' to "
        f"one of these, or to a directory with {CONFIG} and {WEIGHTS}{advice}."
    )


def name_first(setting: str | Path) -> Path | None:
    """What `named` says of a ``str``, with a warning if it is a path, too; None for a ``Path``."""
    found = named(setting) if isinstance(setting, str) else None
    if found is not None:
        warn_of_path(setting, found)
    return found


def warn_of_path(name: str | Path, found: Path) -> None:
    """Warn if what was found by its name is not what is there as a path."""
    path = Path(name)
    if path.exists() and not found.resolve().is_relative_to(path.resolve()):
        warnings.warn(
            f"'{name}' is taken as a name, of '{found}', but there is a path '{name}', too. For "
            f"that, write './{name}'.",
            stacklevel=2,
        )


def as_setting(setting: Setting) -> str:
    """A setting as a text, as configs have it: a path is not taken for a name there."""
    path = setting.path if isinstance(setting, Weights) else setting
    is_like_name = isinstance(path, Path) and NAME.fullmatch(str(path))
    return f"./{path}" if is_like_name else str(path)


def named(name: str) -> Path | None:
    """The directory of embedded or downloaded weights, or of an installed pipeline."""
    if not NAME.fullmatch(name):
        return None
    if (EMBEDDED / name / WEIGHTS).is_file():
        return EMBEDDED / name
    there = present_directory(cache_folder() / name)
    return there if (there / WEIGHTS).is_file() else installed_pipeline(name)


def refuse_lists(setting: object) -> None:
    """Raise the error for several paths, as published weights have; see `other_format`."""
    if isinstance(setting, list | tuple):
        raise other_format(setting)


def other_format(setting: Sequence[str | Path]) -> ValueError:
    """The error for paths that are no weights in our format, with the command that converts
    them."""
    paths = [str(path) for path in setting]
    path = Path(paths[-1] if paths else "")
    name = Path(os.path.abspath(path)).stem or "weights"  # the working directory has one, too
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


def load_bilm(setting: Setting) -> BiLM:
    """The biLM that a setting names, in float32, in evaluation mode.

    Raises:
        ValueError: see `find_weights` and `Weights.load`.
    """
    return find_weights(setting).load()
