"""The model of the elmo component, and what becomes of a listener that is replaced by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model, chain
from thinc.types import Floats2d, Floats3d

from .listener import ElmoListener

LISTENER, MIX = "spacy-elmo.ElmoListener.v1", "spacy-elmo.ScalarMix.v1"


def mixed_layers(
    bilm: Model[list[Doc], list[Floats3d]], mix: Model[list[Floats3d], list[Floats2d]]
) -> Model[list[Doc], list[Floats2d]]:
    """A biLM and a mix of its layers; spaCy's ``replace_listeners`` finds what it needs."""
    model: Model[list[Doc], list[Floats2d]] = chain(bilm, mix)
    model.name = "elmo"
    model.set_ref("bilm", bilm)
    model.set_ref("mix", mix)
    model.attrs["replace_listener"] = replace_listener
    model.attrs["replace_listener_cfg"] = replace_listener_config
    return model


def replace_listener(copied: Model, listener: Model, component: Any) -> Model:
    """What stands in a listener's place: the biLM, with the listener's own mix if it has one."""
    bilm, mix = copied.layers  # thinc's copies have no references
    return mixed_layers(
        bilm, listener.layers[0].copy() if isinstance(listener, ElmoListener) else mix
    )


def replace_listener_config(config: dict[str, Any], of_model: dict[str, Any]) -> dict[str, Any]:
    """The config of what stands in a listener's place.

    Args:
        config: of the component's model.
        of_model: the block ``model.tok2vec`` of the listening component: the listener, or what
            has listeners inside. spaCy replaces them one after another in the order in which it
            was given their paths; this is about the first of those that are left.
    """
    found = next(_listeners(of_model), None)
    if found is None:
        return config
    mix = {"@architectures": MIX}
    for setting, name in [
        ("initial_weights", "initial_weights"), ("gamma", "gamma"), ("layer_norm", "layer_norm"),
        ("dropout", "dropout"), ("mix_l2", "l2"), ("trainable", "trainable"),
    ]:  # fmt: skip
        mix[name] = found[setting]
    return {**config, "mix": mix}


def _listeners(config: Any) -> Iterator[dict[str, Any]]:
    if isinstance(config, dict):
        if config.get("@architectures") == LISTENER:
            yield config
        for value in config.values():
            yield from _listeners(value)
