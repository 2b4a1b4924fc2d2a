"""A biLM in a saved pipeline: the bytes of its component, read as weights again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import srsly
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from thinc.api import Config

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..util.files import reading
from .layout import Card
from .native import Weights, build, compact
from .statistics import Statistics

CONFIG_FILE = "config.cfg"  # of a pipeline


def to_bytes(model: BiLM, card: Card, statistics: Statistics | None) -> bytes:
    """A biLM with its card, in half precision where that is exact."""
    state: dict[str, Any] = {"config": model.config.to_dict(), "card": asdict(card)}
    state["weights"] = save_tensors(compact(model.state_dict()))
    if statistics is not None:
        state["statistics"] = statistics.to_bytes()
    return srsly.msgpack_dumps(state)


def from_bytes(data: bytes) -> tuple[BiLM, Card, Statistics | None]:
    """What `to_bytes` wrote.

    Raises:
        ValueError: the bytes are damaged.
    """
    state = srsly.msgpack_loads(data)
    return _model(state, "The serialized biLM"), Card(**state["card"]), _statistics(state)


def _model(state: Mapping[str, Any], source: str) -> BiLM:
    with reading("the weights of", source):
        tensors = load_tensors(state["weights"])
    return build(BiLMConfig.from_dict(state["config"]), tensors, source)


def _statistics(state: Mapping[str, Any]) -> Statistics | None:
    data = state.get("statistics")
    return None if data is None else Statistics.from_bytes(data, _config(state))


def _config(state: Mapping[str, Any]) -> BiLMConfig:
    return BiLMConfig.from_dict(state["config"])


class SavedWeights(Weights):
    """The biLM of a saved elmo component; it comes without a head.

    Args:
        path: the component's directory.
    """

    def config(self) -> BiLMConfig:
        return _config(self._state)

    def load(self) -> BiLM:
        return _model(self._state, self.where)

    def check(self) -> None:
        self.load()

    def has_warm_state(self) -> bool:
        return self.load().warm_h is not None

    def statistics(self) -> Statistics | None:
        return _statistics(self._state)

    def card(self) -> Card:
        return Card(**self._state["card"])

    def files(self) -> list[Path]:
        return [self.path / "model"]

    @cached_property
    def _state(self) -> Mapping[str, Any]:
        """What `to_bytes` wrote, in the shim of a thinc model."""
        with reading("the elmo component", self.path / "model"):
            nodes = srsly.read_msgpack(self.path / "model")["shims"]
            [shim] = [shim for shims in nodes for shim in shims or () if shim]
            return srsly.msgpack_loads(srsly.msgpack_loads(shim)["state"])


def weights_in(pipeline: Path) -> Weights | None:
    """The biLM in the directory of a saved pipeline; None if it has none.

    Raises:
        ValueError: its config is damaged.
    """
    with reading("the config", pipeline / CONFIG_FILE):
        config = Config().from_disk(pipeline / CONFIG_FILE, interpolate=False)
        factories = {n: block.get("factory") for n, block in config["components"].items()}
    for factory, kind in (("elmo", SavedWeights), ("elmo_surprisal", Weights)):
        for name in factories:
            if factories[name] == factory:
                return kind(pipeline / name)
    return None


def installed_pipelines() -> dict[str, Path]:
    """The directories of installed pipelines, by name; no package is imported."""
    found = {}
    for point in entry_points(group="spacy_models"):
        spec = find_spec(point.value)
        if spec is not None and spec.origin is not None:
            for file in Path(spec.origin).parent.glob(f"*/{CONFIG_FILE}"):
                found[point.name] = file.parent
    return found
