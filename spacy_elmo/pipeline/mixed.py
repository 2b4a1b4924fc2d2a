"""The model of the elmo component, and what becomes of a listener that is replaced by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model, chain
from thinc.types import Floats2d, Floats3d

from .listener import ElmoListener

LISTENER, MIX = "spacy-elmo.ElmoListener.v1", "spacy-elmo.ScalarMix.v1"
SPACYS_LISTENER = "spacy.Tok2VecListener.v1"


def mixed_layers(
    bilm: Model[list[Doc], list[Floats3d]], mix: Model[list[Floats3d], list[Floats2d]]
) -> Model[list[Doc], list[Floats2d]]:
    """A biLM and a mix of its layers; spaCy's ``replace_listeners`` finds what it needs."""
    model: Model[list[Doc], list[Floats2d]] = chain(bilm, mix)
    model.name = "elmo"
    model.set_ref("bilm", bilm)
    model.set_ref("mix", mix)
    model.attrs["replace_listener"] = replace_listener
    return model


def replace_listener(copied: Model, listener: Model, component: Any) -> Model:
    """What stands in a listener's place: the biLM, with the listener's own mix if it has one."""
    bilm, mix = copied.layers  # thinc's copies have no references
    return mixed_layers(
        bilm, listener.layers[0].copy() if isinstance(listener, ElmoListener) else mix
    )


class ReplacedConfig:
    """The config of what stands in a listener's place; spaCy calls this for each listener.

    It names neither the listener nor its place, so this is about the first that is left; if the
    next call shows that it was another one's, what was given is corrected.

    Args:
        component: name of the component that is listened to.
    """

    def __init__(self, component: str):
        self.component = component
        self._listeners: dict[tuple[str, ...], dict[str, Any]] = {}  # that were left, by place
        self._given: dict[str, Any] | None = None

    def __call__(self, config: dict[str, Any], of_model: dict[str, Any]) -> dict[str, Any]:
        """
        Args:
            config: of the component's model.
            of_model: the block ``model.tok2vec`` of the listening component: the listener, or
                what has listeners inside.
        """
        blocks = dict(_blocks(of_model))
        for place, block in blocks.items():
            if block is self._given and place in self._listeners:
                block["mix"] = _mix_of(self._listeners[place], config)
        self._listeners = {
            place: block for place, block in blocks.items() if self._is_listener(block)
        }
        found = next(iter(self._listeners.values()), {})
        self._given = {**config, "mix": _mix_of(found, config)}
        return self._given

    def _is_listener(self, block: dict[str, Any]) -> bool:
        kind, upstream = block.get("@architectures"), block.get("upstream")
        if kind == LISTENER:
            return upstream == self.component
        return kind == SPACYS_LISTENER and upstream in (self.component, "*")


def _mix_of(listener: dict[str, Any], config: dict[str, Any]) -> Any:
    """The mix of an ElmoListener; the component's own for one of spaCy's."""
    if listener.get("@architectures") != LISTENER:
        return config.get("mix")
    names = ("initial_weights", "gamma", "layer_norm", "dropout", "trainable")
    return {
        "@architectures": MIX, "l2": listener["mix_l2"], **{name: listener[name] for name in names}
    }  # fmt: skip


def _blocks(
    config: dict[str, Any], place: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """All blocks of a config and their places, in their order."""
    yield place, config
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _blocks(value, (*place, name))
