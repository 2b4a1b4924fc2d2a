"""A biLM with what belongs to it: found by a setting, or in a saved pipeline."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import srsly

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..weights import native
from ..weights.find import find_weights
from ..weights.layout import Card
from ..weights.statistics import Statistics


class LoadedBiLM(NamedTuple):
    """A biLM with what belongs to it.

    Attributes:
        bilm: the biLM.
        card: name, language, licence and sources of the weights.
        statistics: for vectors that are compared, if there are any.
    """

    bilm: BiLM
    card: Card
    statistics: Statistics | None

    @classmethod
    def find(cls, weights: str | list[str]) -> LoadedBiLM:
        """The biLM of a weights setting; a ValueError if it is missing or damaged."""
        found = find_weights(weights)
        return cls(found.load(), found.card(), found.statistics())

    def to_bytes(self) -> bytes:
        state: dict[str, Any] = {"config": self.bilm.config.to_dict(), "card": asdict(self.card)}
        state["weights"] = native.to_bytes(self.bilm)
        if self.statistics is not None:
            state["statistics"] = self.statistics.to_bytes()
        return srsly.msgpack_dumps(state)

    @classmethod
    def from_bytes(cls, data: bytes) -> LoadedBiLM:
        """The biLM that `to_bytes` serialized; a ValueError if the bytes are damaged."""
        try:
            state = srsly.msgpack_loads(data)
            config, card = BiLMConfig.from_dict(state["config"]), Card(**state["card"])
            bilm = native.from_bytes(config, state["weights"])
            statistics = state.get("statistics")
            if statistics is not None:
                statistics = Statistics.from_bytes(statistics, config)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"The serialized elmo component is damaged: {error}") from error
        return cls(bilm, card, statistics)
