"""The nodes of a component's model."""

from __future__ import annotations

from typing import Any, TypeVar

from thinc.api import Model

Node = TypeVar("Node", bound=Model)


def model_nodes(component: Any, kind: type[Node]) -> list[Node]:
    """The nodes of one class in a component's model, none if it has no model."""
    model = getattr(component, "model", None)
    nodes = model.walk() if isinstance(model, Model) else ()
    return [node for node in nodes if isinstance(node, kind)]
