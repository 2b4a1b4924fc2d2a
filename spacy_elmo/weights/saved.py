"""A biLM in a saved pipeline: the bytes of its component, read as weights again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
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
from .native import Weights
from .statistics import Statistics
from .tensors import build, compact

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
    with reading("the", "serialized elmo component"):
        state = srsly.msgpack_loads(data)
        config, found = BiLMConfig.from_dict(state["config"]), state.get("statistics")
        statistics = None if found is None else Statistics.from_bytes(found, config)
        model = build(config, load_tensors(state["weights"]), "Its weights file")
        return model, Card(**state["card"]), statistics


class SavedWeights(Weights):
    """The biLM of a saved elmo component; it comes without a head.

    Args:
        path: the component's directory.
    """

    def config(self) -> BiLMConfig:
        return self.load().config

    def load(self) -> BiLM:
        return self._read()[0]

    def card(self) -> Card:
        return self._read()[1]

    def statistics(self) -> Statistics | None:
        return self._read()[2]

    def files(self) -> list[Path]:
        return [self.path / "model"]

    def _read(self) -> tuple[BiLM, Card, Statistics | None]:
        """What `to_bytes` wrote, in the shim of a thinc model."""
        with reading("the elmo component", self.path / "model"):
            nodes = srsly.read_msgpack(self.path / "model")["shims"]
            [shim] = [shim for shims in nodes for shim in shims or () if shim]
            return from_bytes(srsly.msgpack_loads(shim)["state"])


def weights_in(pipeline: Path) -> Weights | None:
    """The biLM in the directory of a saved pipeline, or of its elmo component; None without one.

    Raises:
        ValueError: its config is damaged, or it has several.
    """
    if (pipeline / "model").is_file() and (pipeline.parent / CONFIG_FILE).is_file():
        return SavedWeights(pipeline)
    if not (pipeline / CONFIG_FILE).is_file():
        return None
    with reading("the config", pipeline / CONFIG_FILE):
        config = Config().from_disk(pipeline / CONFIG_FILE, interpolate=False)
        blocks = config.get("components", {}).items()
        found = [pipeline / name for name, block in blocks if block.get("factory") == "elmo"]
    if len(found) > 1:
        raise ValueError(
            f"The pipeline '{pipeline}' has several biLMs. Give the directory of one: "
            f"{' or '.join(map(str, found))}."
        )
    return SavedWeights(found[0]) if found else None


def installed_pipeline(name: str) -> Path | None:
    """The directory of an installed pipeline, whose package is not imported; None if there is
    none of the name."""
    for point in entry_points(group="spacy_models", name=name):
        package, *inner = point.value.split(".")
        with suppress(ImportError, ValueError):  # it is not there
            spec = find_spec(package)
            for folder in (spec and spec.submodule_search_locations) or ():
                for file in Path(folder, *inner).glob(f"*/{CONFIG_FILE}"):
                    return file.parent
    return None
