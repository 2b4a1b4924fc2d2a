"""What the parts of a pipeline have learned to take from which layer."""

from __future__ import annotations

from typing import Any, NamedTuple

from spacy.language import Language
from thinc.api import Model

from .scalar_mix import NAME, softmax


class Mix(NamedTuple):
    """A mix of a biLM's layers, ``γ · Σ_j s_j · h_j``.

    Attributes:
        component: whose model it is in.
        listener: which one there: ``"doc.tensor"`` for an elmo component's own, else what the
            architecture calls it, such as ``"elmo"`` and ``"output_elmo"``, or its number.
        weights: s_j, from the token layer (0) to the top; they add up to 1.
        gamma: γ.
    """

    component: str
    listener: str
    weights: tuple[float, ...]
    gamma: float


def mixes(nlp: Language) -> list[Mix]:
    """The mixes in all components of a pipeline, in its order, disabled components included.

    Args:
        nlp: any pipeline.

    Returns:
        One for each; those that do not know their biLM yet, before the training, are left out.
    """
    found = []
    for component, pipe in nlp.components:
        model = getattr(pipe, "model", None)
        if not isinstance(model, Model):
            continue
        nodes = [node for node in model.walk() if node.name == NAME and node.has_param("w")]
        for number, node in enumerate(nodes):
            s = softmax(node.ops, node.get_param("w"))
            gamma: Any = node.get_param("gamma")
            name = _name(model, node) or str(number)
            found.append(Mix(component, name, tuple(s.tolist()), float(gamma[0])))
    return found


def _name(model: Model, mix: Model) -> str:
    """What is known of a mix in a component's model."""
    around = next((node for node in model.walk() if mix in node.layers), None)
    if around is model:  # an elmo component
        return "doc.tensor"
    for node in model.walk():
        for name in node.ref_names:
            if node.maybe_get_ref(name) is around:
                return name
    return ""
