"""`spacy_elmo.mixes`: the mixes in a pipeline, by their names in its config."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from spacy.language import Language
from thinc.api import Model

from .scalar_mix import NAME, layer_weights
from .settings import MixSettings

Node = TypeVar("Node", bound=Model)


class Mix(NamedTuple):
    """A mix of a biLM's layers, ``γ · Σ_j s_j · h_j``.

    Attributes:
        component: name of the component whose model it is in.
        listener: its name in the config of the model, such as ``"tok2vec"``, ``"elmo"`` or
            ``"output_elmo"``, with an index if several have that name; ``"doc.tensor"`` for the mix
            of an elmo component.
        weights: s_j, from the token layer (0) to the top layer; they add up to 1.
        gamma: γ.
        is_trained: False if w and γ have the values that the settings gave them. This is so for the
            mix of an elmo component if every listener has its own mix.
    """

    component: str
    listener: str
    weights: tuple[float, ...]
    gamma: float
    is_trained: bool = True


def mixes(nlp: Language) -> list[Mix]:
    """The mixes in all components of a pipeline, also disabled ones, in their order.

    Args:
        nlp: any pipeline.

    Returns:
        One `Mix` for each; a mix has no weights before `initialize`, and is left out.
    """
    result: list[Mix] = []
    for component, pipe in nlp.components:
        nodes = [n for n in model_nodes(pipe, Model) if n.name == NAME]
        names = [find_name(pipe.model, node) for node in nodes]  # type: ignore[attr-defined]
        for index, (node, name) in enumerate(zip(nodes, names, strict=True)):
            if node.has_param("w"):
                gamma: Any = node.get_param("gamma")
                shown = f"{name} {index}" if names.count(name) > 1 else name
                weights = tuple(layer_weights(node).tolist())
                result.append(Mix(component, shown, weights, float(gamma[0]), is_trained(node)))
    return result


def is_trained(mix: Model) -> bool:
    """Return whether a mix has other weights or another γ than its settings gave it."""
    w: Any = mix.get_param("w")
    gamma: Any = mix.get_param("gamma")
    settings: MixSettings = mix.attrs["settings"]
    given = [*(settings.initial_weights or [0.0] * len(w)), settings.gamma]
    return [*w.tolist(), *gamma.tolist()] != np.asarray(given, np.float32).tolist()


def model_nodes(component: Any, kind: type[Node]) -> list[Node]:
    """The nodes of a class in a component's model; none if the component has no model."""
    model = getattr(component, "model", None)
    return [n for n in (model.walk() if isinstance(model, Model) else ()) if isinstance(n, kind)]


def find_name(model: Model, mix: Model) -> str:
    """The name of the smallest part of a component's model that contains a mix."""
    if mix in model.layers:  # an elmo component
        return "doc.tensor"
    refs = ((name, node.maybe_get_ref(name)) for node in model.walk() for name in node.ref_names)
    nodes = [(name, [*part.walk()]) for name, part in refs if part is not None and part is not mix]
    parts = [(len(inside), name) for name, inside in nodes if mix in inside]
    return min(parts, default=(0, "mix"))[1]
