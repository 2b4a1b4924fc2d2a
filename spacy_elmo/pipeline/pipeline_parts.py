"""The components of a pipeline, and the nodes of their models."""

from __future__ import annotations

from typing import Any, TypeVar

from spacy.language import Language
from thinc.api import Model

Node = TypeVar("Node", bound=Model)


def model_nodes(component: Any, kind: type[Node]) -> list[Node]:
    """The nodes of one class in a component's model, none if it has no model."""
    model = getattr(component, "model", None)
    nodes = model.walk() if isinstance(model, Model) else ()
    return [node for node in nodes if isinstance(node, kind)]


def list_components(nlp: Language) -> str:
    """The components of a pipeline with their factories, in order, for errors."""
    facts = (
        (name, nlp.get_pipe_meta(name).factory + ", disabled" * (name in nlp.disabled))
        for name in nlp.component_names
    )
    return "The pipeline is: " + ", ".join(f"'{name}' ({fact})" for name, fact in facts) + "."
