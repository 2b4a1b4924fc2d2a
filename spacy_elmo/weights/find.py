"""From a ``weights`` setting, a name or a directory, to the weights."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any

from ..bilm.model import BiLM
from ..util.files import present_directory
from .catalogue import download_hint, downloaded_names, find_downloaded
from .layout import CONFIG, WEIGHTS
from .native import Weights
from .saved import CONFIG_FILE, installed_pipelines, weights_in

EMBEDDED = Path(__file__).parent.parent / "models"
MANY_LANGS = "token_embedder.pkl"  # a file of ELMoForManyLangs, beside another config.json

Setting = str | Path | Weights


class WeightsNotFoundError(ValueError):
    """There is nothing where weights should be; a saved pipeline does not need it."""


def find_weights(setting: Setting) -> Weights:
    """The weights that a setting names; no tensor is read.

    Args:
        setting: the name of embedded or downloaded weights, or of an installed pipeline with an
            elmo component; a directory of our format, or of a saved pipeline; or `Weights`, which
            are returned as they are.

    Raises:
        WeightsNotFoundError: there is none of these.
        ValueError: it is of another format; the message has the command that converts it.
    """
    if isinstance(setting, Weights):
        return setting
    if not isinstance(setting, str | Path):
        raise other_format(setting)
    name = str(setting)
    try:
        if name in (embedded := _embedded()):
            return Weights(embedded[name])
        path = present_directory(find_downloaded(name) or Path(setting))
        if (path / CONFIG).is_file() and not (path / MANY_LANGS).exists():
            return Weights(path)
        pipeline = installed_pipelines().get(name, path)
        if (pipeline / CONFIG_FILE).is_file() and (found := weights_in(pipeline)):
            return found
        if path.exists():
            raise other_format([setting])
    except OSError as error:
        raise WeightsNotFoundError(f"Cannot read the ELMo weights {setting!r}: {error}") from error
    raise WeightsNotFoundError(
        download_hint(name)
        or f"Cannot find the ELMo weights {name!r}: there is no such directory, and the embedded, "
        f"downloaded and installed ones are {known_names()}. Set 'weights' to one of these names, "
        f"or to a directory with {CONFIG} and {WEIGHTS}."
    )


def other_format(setting: Any) -> ValueError:
    """The error for one or two paths that are no weights in our format."""
    paths = [str(path) for path in setting]
    last = Path(next((path for path in paths if not path.endswith(".json")), "weights"))
    out = str(last.with_name(f"{last.stem}-converted"))
    return WeightsNotFoundError(
        f"{' and '.join(map(repr, paths)) or 'An empty list'} is no directory with {CONFIG} and "
        f"{WEIGHTS}. If it is a biLM in another format, convert it once with: python -m spacy "
        f'elmo convert {" ".join(map(quote, [*paths, out]))} and then set weights = "{out}".'
    )


def known_names(lang: str | None = None) -> list[str]:
    """The names of embedded, downloaded and installed weights, all or those of a language."""
    installed = {name for name, path in installed_pipelines().items() if weights_in(path)}
    names = sorted({*_embedded(), *downloaded_names(), *installed})
    return names if lang is None else [name for name in names if _lang(name) == lang]


def _lang(name: str) -> object:
    """The language on the card of weights; None if it says none, or they are damaged."""
    with suppress(ValueError):
        return find_weights(name).card().meta.get("lang")
    return None


def _embedded() -> dict[str, Path]:
    return {file.parent.name: file.parent for file in EMBEDDED.glob(f"*/{CONFIG}")}


def load_bilm(setting: Setting) -> BiLM:
    """The biLM that a setting names, in float32, in evaluation mode.

    Raises:
        ValueError: see `find_weights` and `Weights.load`.
    """
    return find_weights(setting).load()
