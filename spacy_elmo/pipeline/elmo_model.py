"""The model of the elmo component, and its copies that replace listeners."""

from __future__ import annotations

from typing import Any

from spacy.tokens import Doc
from thinc.api import Model, chain
from thinc.types import Floats2d, Floats3d

from .add.blocks import find_blocks
from .learned_from import ATTRIBUTE, check_listener
from .listener import ElmoListener
from .scalar_mix import MixModel

ELMO_MODEL, MIX = "spacy-elmo.Elmo.v1", "spacy-elmo.ScalarMix.v1"
LISTENER = "spacy-elmo.ElmoListener.v1"
SPACYS_LISTENER = "spacy.Tok2VecListener.v1"


def elmo_model(
    bilm: Model[list[Doc], list[Floats3d]], mix: MixModel
) -> Model[list[Doc], list[Floats2d]]:
    """A biLM and a mix of its layers, with what spaCy's ``replace_listeners`` looks for."""
    model: Model[list[Doc], list[Floats2d]] = chain(bilm, mix)
    model.name = "elmo"
    model.set_ref("bilm", bilm)
    model.set_ref("mix", mix)
    model.attrs["replace_listener"] = replace_listener
    return model


def replace_listener(copied: Model, listener: Model, component: Any) -> Model:
    """The model that replaces a listener: the biLM, with the listener's own mix if it has one.

    Raises:
        ValueError: the listener has learned from another biLM.
    """
    if ATTRIBUTE in listener.attrs:
        _ = component.shim.bilm  # loaded, to compare what it has learned from
        names = [name for name, each in component.listener_map.items() if listener in each]
        check_listener(component, names[0], listener)
    bilm, mix = copied.layers  # thinc's copies have no references
    return elmo_model(
        bilm, listener.layers[0].copy() if isinstance(listener, ElmoListener) else mix
    )


class ReplacedConfig:
    """The config of the model that replaces a listener; spaCy calls this for each listener.

    It has to guess. spaCy asks for all configs of a component before it asks for any model, in the
    order in which its caller has named their places, and passes neither place nor listener. A call
    therefore assumes the first listener that is left. The next call shows where spaCy has put the
    config, which is corrected if its place was another's; before the last call one alone is left.

    Args:
        component: name of the upstream component.
    """

    def __init__(self, component: str):
        self.component = component
        self._listeners: dict[tuple[str, ...], dict[str, Any]] = {}  # not replaced yet, by path
        self._given: dict[str, Any] | None = None

    def __call__(self, config: dict[str, Any], tok2vec: dict[str, Any]) -> dict[str, Any]:
        """
        Args:
            config: of the upstream component's model.
            tok2vec: the block ``model.tok2vec`` of the listening component: a listener, or a model
                with listeners inside.
        """
        blocks = dict(find_blocks(tok2vec))
        for path, block in blocks.items():
            if block is self._given and path in self._listeners:
                block["mix"] = _mix_config(self._listeners[path], config)
        self._listeners = {path: block for path, block in blocks.items() if self._listens(block)}
        found = next(iter(self._listeners.values()), {})
        self._given = {**config, "mix": _mix_config(found, config)}
        return self._given

    def _listens(self, block: dict[str, Any]) -> bool:
        kind, upstream = block.get("@architectures"), block.get("upstream")
        if kind == LISTENER:
            return upstream == self.component
        return kind == SPACYS_LISTENER and upstream in (self.component, "*")


def _mix_config(listener: dict[str, Any], config: dict[str, Any]) -> Any:
    """The mix of an ElmoListener; the component's own for one of spaCy's."""
    if listener.get("@architectures") != LISTENER:
        return config.get("mix")
    names = ("initial_weights", "gamma", "layer_norm", "dropout", "trainable", "layers")
    return {
        "@architectures": MIX, "l2": listener["mix_l2"], **{name: listener[name] for name in names}
    }  # fmt: skip
