"""``spacy-elmo.Elmo.v1``: the elmo component's model, and its copies that replace listeners."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model, chain
from thinc.types import Floats2d, Floats3d

from .listener import ElmoListener
from .scalar_mix import MixModel

ELMO_MODEL, MIX = "spacy-elmo.Elmo.v1", "spacy-elmo.ScalarMix.v1"
LISTENER, SPACYS_LISTENER = "spacy-elmo.ElmoListener.v1", "spacy.Tok2VecListener.v1"


def elmo_model(
    bilm: Model[list[Doc], list[Floats3d]], mix: MixModel, width: int | None = None
) -> Model[list[Doc], list[Floats2d]]:
    """Chain a biLM and a mix of its layers; spaCy's ``replace_listeners`` can copy the model.

    Args:
        bilm: a `bilm_layer.bilm_layer`.
        mix: a `scalar_mix.ScalarMix`.
        width: the width of the vectors, if it is known.
    """
    model: Model[list[Doc], list[Floats2d]] = chain(bilm, mix)
    if width is not None:
        model.set_dim("nO", width)
    model.name = "elmo"
    model.set_ref("bilm", bilm)
    model.set_ref("mix", mix)
    model.attrs["replace_listener"] = replace_listener
    return model


def replace_listener(copied: Model, listener: Model, component: Any) -> Model:
    """The model that replaces a listener: the biLM, with the listener's own mix if it has one.

    Args:
        copied: a copy of the elmo component's model.
        listener: an `ElmoListener`, or one of spaCy's.
        component: the elmo component.

    Raises:
        ValueError: the listener has learned from another biLM.
    """
    name = next(name for name, nodes in component.listener_map.items() if listener in nodes)
    _ = component.bilm.model  # loads the biLM, which `check_listener` compares
    component.check_listener(listener, name)
    bilm, mix = copied.layers  # thinc does not copy references
    if isinstance(listener, ElmoListener):
        mix = listener.layers[0].copy()
    return elmo_model(bilm, mix)


def replace_config(name: str, config: dict[str, Any], tok2vec: dict[str, Any]) -> dict[str, Any]:
    """The config of the model that replaces a listener.

    spaCy calls this once for each path that ``replace_listeners`` was given, without the path. So
    the paths must be in the order of the config.

    Args:
        name: the elmo component's name.
        config: the config of its model.
        tok2vec: the block ``model.tok2vec`` of the listening component: a listener, or a model
            with listeners in it, of which some may be replaced already.

    Raises:
        ValueError: the paths come in another order.
    """
    replaced, listeners = False, []
    for _, block in find_blocks(tok2vec):
        is_listener = block.get("@architectures") in (LISTENER, SPACYS_LISTENER)
        if is_listener and block.get("upstream") in (name, "*"):
            listeners.append(block)
        elif listeners and {**block, "mix": None} == {**config, "mix": None}:
            replaced = True  # after a listener that is not
    if replaced or not listeners:
        raise ValueError(
            "replace_listeners takes the paths of the listeners in the order of the component's "
            "config, which is changed now: load the pipeline again, and give them in that order."
        )
    return {**config, "mix": _mix_config(listeners[0], config)}


def find_blocks(
    block: dict[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """A block of a config and all blocks in it, in order, with their paths."""
    yield path, block
    for name, value in block.items():
        if isinstance(value, dict):
            yield from find_blocks(value, (*path, name))


def _mix_config(listener: dict[str, Any], config: dict[str, Any]) -> Any:
    """The block of an ElmoListener's mix; for spaCy's listeners, of the component's mix."""
    if listener["@architectures"] != LISTENER:
        return config.get("mix")
    same = {n: v for n, v in listener.items() if n not in ("@architectures", "upstream", "mix_l2")}
    return {"@architectures": MIX, "l2": listener["mix_l2"], **same}
