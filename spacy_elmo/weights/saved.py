"""The biLM in a saved pipeline: weights in the bytes of its elmo component."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import srsly
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..util.files import members, naming_errors
from .layout import Card
from .native import Weights
from .statistics import Statistics
from .tensors import build, stored

CONFIG_FILE = "config.cfg"  # in the directory of a pipeline
Part = TypeVar("Part")


def to_bytes(model: BiLM, card: Card, statistics: Statistics | None) -> bytes:
    """Serialize a biLM with its card and statistics, in half precision where that is exact."""
    state: dict[str, Any] = {"config": model.config.to_dict(), "card": asdict(card)}
    state["weights"] = save_tensors(stored(model))
    if statistics is not None:
        state["statistics"] = statistics.to_bytes()
    return srsly.msgpack_dumps(state)


class Parts:
    """The parts that `to_bytes` has serialized, each of which is checked when it is read.

    Args:
        data: the bytes.
    """

    def __init__(self, data: bytes):
        self._state = srsly.msgpack_loads(data)
        members(self._state, config=dict, weights=bytes, card=dict)

    def config(self) -> BiLMConfig:
        return BiLMConfig.from_dict(self._state["config"])

    def card(self) -> Card:
        return Card.from_dict(self._state["card"])

    def statistics(self) -> Statistics | None:
        if self._state.get("statistics") is None:
            return None
        [data] = members(self._state, statistics=bytes)
        return Statistics.from_bytes(data, self.config())

    def load(self) -> BiLM:
        return build(self.config(), "Its weights file", load_tensors(self._state["weights"]))


def from_bytes(data: bytes) -> tuple[BiLM, Card, Statistics | None]:
    """Read the biLM, card and statistics that `to_bytes` has serialized.

    Raises:
        ValueError: the bytes are damaged.
    """
    with naming_errors("the", "serialized elmo component"):
        parts = Parts(data)
        return parts.load(), parts.card(), parts.statistics()


class SavedWeights(Weights):
    """The weights in a saved elmo component, without a head. The file is read once, and kept.

    Args:
        path: the directory of the component.
    """

    def config(self) -> BiLMConfig:
        return self._read(Parts.config)

    def load(self) -> BiLM:
        return self._read(Parts.load)

    def card(self) -> Card:
        return self._read(Parts.card)

    def statistics(self) -> Statistics | None:
        return self._read(Parts.statistics)

    def files(self) -> list[Path]:
        return [self.path / "model"]

    def _read(self, part: Callable[[Parts], Part]) -> Part:
        with naming_errors("the elmo component", self.path / "model"):
            return part(self._parts)

    @cached_property
    def _parts(self) -> Parts:
        # They are the state of the only shim in a thinc model.
        [nodes] = members(srsly.read_msgpack(self.path / "model"), shims=list)
        shims = [shim for node in nodes if isinstance(node, list) for shim in node]
        states = [shim for shim in shims if isinstance(shim, bytes) and shim]
        if len(states) != 1:
            raise ValueError("it is another component")
        return Parts(*members(srsly.msgpack_loads(states[0]), state=bytes))


def weights_in(path: Path) -> Weights | None:
    """The weights in the directory of a saved pipeline (its component `elmo`) or of a saved elmo
    component with any name; None if there are none."""
    for component in (path, path / "elmo"):
        if (component / "model").is_file() and (component.parent / CONFIG_FILE).is_file():
            return SavedWeights(component)
    return None


def installed_pipeline(name: str) -> Path | None:
    """The directory of the pipeline in an installed package, None if there is no such pipeline. The
    package is not imported."""
    with suppress(ImportError, ValueError):  # a module may have no spec
        spec = find_spec(name) if name.isidentifier() else None  # a dot would import the parent
        for folder in (spec and spec.submodule_search_locations) or ():
            for file in Path(folder).glob(f"{name}-*/{CONFIG_FILE}"):
                return file.parent
    return None
