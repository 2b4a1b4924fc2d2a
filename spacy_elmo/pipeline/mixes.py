"""The mixes in a pipeline, by the names that its config has for them: `spacy_elmo.mixes`."""

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
        listener: which one there: ``"doc.tensor"`` for an elmo component's own, else the name that
            the model's config has for it, such as ``"tok2vec"``, ``"elmo"`` and ``"output_elmo"``;
            with its index, if there are several of that name.
        weights: s_j, from the token layer (0) to the top; they add up to 1.
        gamma: γ.
        is_trained: False if w and γ are those that its settings gave it, so that nothing has
            learned them; as the elmo component's own where all components have mixes.
    """

    component: str
    listener: str
    weights: tuple[float, ...]
    gamma: float
    is_trained: bool = True


def mixes(nlp: Language) -> list[Mix]:
    """The mixes in all components of a pipeline, in its order, disabled components included.

    Args:
        nlp: any pipeline.

    Returns:
        One `Mix` for each; those without weights yet, before the training, are left out.
    """
    found = []
    for component, pipe in nlp.components:
        nodes = [n for n in model_nodes(pipe, Model) if n.name == NAME]
        names = [name_in(pipe.model, node) for node in nodes]  # type: ignore[attr-defined]
        for index, (node, name) in enumerate(zip(nodes, names, strict=True)):
            if node.has_param("w"):
                gamma: Any = node.get_param("gamma")
                shown = f"{name} {index}" if names.count(name) > 1 else name
                weights = tuple(layer_weights(node).tolist())
                found.append(Mix(component, shown, weights, float(gamma[0]), is_trained(node)))
    return found


def is_trained(mix: Model) -> bool:
    """Whether a mix with weights has other values than those that its settings gave it."""
    w: Any = mix.get_param("w")
    gamma: Any = mix.get_param("gamma")
    settings: MixSettings = mix.attrs["settings"]
    given = [*(settings.initial_weights or [0.0] * len(w)), settings.gamma]
    return [*w.tolist(), *gamma.tolist()] != np.asarray(given, np.float32).tolist()


def model_nodes(component: Any, kind: type[Node]) -> list[Node]:
    """The nodes of one class in a component's model, none if it has no model."""
    model = getattr(component, "model", None)
    return [n for n in (model.walk() if isinstance(model, Model) else ()) if isinstance(n, kind)]


def name_in(model: Model, mix: Model) -> str:
    """The name that a component's model has for the smallest part of it that a mix is in."""
    if mix in model.layers:  # an elmo component
        return "doc.tensor"
    refs = ((name, node.maybe_get_ref(name)) for node in model.walk() for name in node.ref_names)
    nodes = [(name, [*part.walk()]) for name, part in refs if part is not None and part is not mix]
    parts = [(len(inside), name) for name, inside in nodes if mix in inside]
    return min(parts, default=(0, "mix"))[1]
