"""Layers of the Docs that are alive, kept by components for their listeners.

On the Docs themselves they would ride along through processes and bytes.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from spacy.tokens import Doc
from thinc.types import Floats3d

from .cache import LayerCache

_kept: WeakKeyDictionary[Doc, dict[str, tuple[Floats3d, LayerCache]]] = WeakKeyDictionary()


def keep_layers(doc: Doc, component: str, layers: Floats3d, cache: LayerCache) -> None:
    """Note what a component has read of a Doc, until the Doc or the note is dropped.

    Args:
        doc: the Doc.
        component: the component's name.
        layers: ``(L + 1, n_tokens, 2P)``.
        cache: the component's. A component among the frozen ones of a training does not know that
            something learns from it; its listeners do.
    """
    _kept.setdefault(doc, {})[component] = layers, cache


def kept_layers(doc: Doc) -> dict[str, tuple[Floats3d, LayerCache]]:
    """What components have read of a Doc, and their caches, by the components' names."""
    return _kept.get(doc, {})


def drop_layers(doc: Doc) -> None:
    """Forget what components have read of a Doc."""
    _kept.pop(doc, None)
