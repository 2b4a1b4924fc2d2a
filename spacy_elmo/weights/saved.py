"""A biLM in a saved pipeline: the bytes of its component, read as weights again."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import srsly
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..util.files import members, reading
from .layout import Card
from .native import Weights
from .statistics import Statistics
from .tensors import build, stored_tensors

CONFIG_FILE = "config.cfg"  # of a pipeline


def to_bytes(model: BiLM, card: Card, statistics: Statistics | None) -> bytes:
    """A biLM with its card, in half precision where that is exact."""
    state: dict[str, Any] = {"config": model.config.to_dict(), "card": asdict(card)}
    state["weights"] = save_tensors(stored_tensors(model))
    if statistics is not None:
        state["statistics"] = statistics.to_bytes()
    return srsly.msgpack_dumps(state)


class Parts:
    """What `to_bytes` wrote; each part is read and checked when it is asked for.

    Args:
        data: the bytes.
    """

    def __init__(self, data: bytes):
        self._state = srsly.msgpack_loads(data)
        self._config, self._weights, self._card = members(
            self._state, config=dict, weights=bytes, card=dict
        )

    @cached_property
    def config(self) -> BiLMConfig:
        return BiLMConfig.from_dict(self._config)

    @cached_property
    def card(self) -> Card:
        return Card.from_dict(self._card)

    @cached_property
    def statistics(self) -> Statistics | None:
        if self._state.get("statistics") is None:
            return None
        [found] = members(self._state, statistics=bytes)
        return Statistics.from_bytes(found, self.config)

    def load(self) -> BiLM:
        return build(self.config, "Its weights file", load_tensors(self._weights))


def from_bytes(data: bytes) -> tuple[BiLM, Card, Statistics | None]:
    """What `to_bytes` wrote.

    Raises:
        ValueError: the bytes are damaged.
    """
    with reading("the", "serialized elmo component"):
        parts = Parts(data)
        return parts.load(), parts.card, parts.statistics


class SavedWeights(Weights):
    """The biLM of a saved elmo component; it comes without a head.

    The file is read once, and is in memory from then on.

    Args:
        path: the component's directory.
    """

    def config(self) -> BiLMConfig:
        with self._reading():
            return self._parts.config

    def load(self) -> BiLM:
        with self._reading():
            return self._parts.load()

    def card(self) -> Card:
        with self._reading():
            return self._parts.card

    def statistics(self) -> Statistics | None:
        with self._reading():
            return self._parts.statistics

    def files(self) -> list[Path]:
        return [self.path / "model"]

    def _reading(self) -> AbstractContextManager[None]:
        return reading("the elmo component", self.path / "model")

    @cached_property
    def _parts(self) -> Parts:
        """What is in the shim of a thinc model."""
        [nodes] = members(srsly.read_msgpack(self.path / "model"), shims=list)
        shims = [shim for node in nodes if isinstance(node, list) for shim in node]
        found = [shim for shim in shims if isinstance(shim, bytes) and shim]
        if len(found) != 1:
            raise ValueError("it is another component")
        return Parts(*members(srsly.msgpack_loads(found[0]), state=bytes))


def weights_in(path: Path) -> Weights | None:
    """The biLM in the directory of a saved pipeline, of its component `elmo`, or in that of
    an elmo component of any name; None without one."""
    for component in (path, path / "elmo"):
        if (component / "model").is_file() and (component.parent / CONFIG_FILE).is_file():
            return SavedWeights(component)
    return None


def installed_pipeline(name: str) -> Path | None:
    """The directory of the pipeline in an installed package, which is not imported; None if there
    is none of the name."""
    with suppress(ImportError, ValueError):  # of modules that were made without a spec
        spec = find_spec(name) if name.isidentifier() else None  # a dot imports what is before it
        for folder in (spec and spec.submodule_search_locations) or ():
            for file in Path(folder).glob(f"{name}-*/{CONFIG_FILE}"):
                return file.parent
    return None
