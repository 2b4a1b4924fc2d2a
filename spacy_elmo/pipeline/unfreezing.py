"""Gradual unfreezing: the biLM's parts begin to learn one after another, the top layer first.

Howard and Ruder 2018, §3.3: a layer for each epoch, so that what the lower ones know is not lost
to gradients of a task that has hardly begun to be learned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spacy.language import Language
from thinc.api import Model

from .shim import BiLMShim

UNITS = ("epoch", "step")


def gradual_unfreezing(
    component: str, every: int, unit: str, first: int
) -> Callable[[Language, dict[str, Any]], None]:
    """A callback for ``[training.before_update]``; the arguments are those of `architectures`.

    Raises:
        ValueError: a setting is out of range; or, in the training, there is no such component,
            or its biLM is frozen.
    """
    if unit not in UNITS:
        raise ValueError(
            f'The setting unit = "{unit}" of spacy-elmo.gradual_unfreezing.v1 is unknown; use '
            f'"epoch" or "step".'
        )
    for name, number, least in [("every", every, 1), ("first", first, 0)]:
        if number < least:
            raise ValueError(
                f"The setting {name} = {number} of spacy-elmo.gradual_unfreezing.v1 is too small; "
                f"use at least {least}."
            )

    def unfreeze(nlp: Language, progress: dict[str, Any]) -> None:
        for shim in _shims(nlp, component):
            shim.let_learn(first + progress[unit] // every)

    return unfreeze


def _shims(nlp: Language, component: str) -> list[BiLMShim]:
    model = getattr(dict(nlp.components).get(component), "model", None)
    nodes = model.walk() if isinstance(model, Model) else ()
    shims = [shim for node in nodes for shim in node.shims if isinstance(shim, BiLMShim)]
    problem = ""
    if not shims:
        problem = f"has no biLM; the pipeline's components are {', '.join(nlp.component_names)}"
    elif all(shim.settings.frozen for shim in shims):
        problem = "has a frozen biLM; set frozen = false in its model, or remove the callback"
    elif component in nlp.config["training"].get("frozen_components", ()):
        problem = "is one of the frozen_components of the training; take it off them"
    if problem:
        raise ValueError(
            f"The callback spacy-elmo.gradual_unfreezing.v1 is to unfreeze the component "
            f"'{component}', which {problem}."
        )
    return shims
