"""Layers of the Docs that are alive, kept by components for their listeners.

On the Docs themselves they would ride along through processes and bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import ReferenceType, WeakKeyDictionary, ref

from spacy.tokens import Doc
from thinc.types import Floats3d

from .cache import LayerCache

if TYPE_CHECKING:
    from .gradients import Gradients


@dataclass(frozen=True)
class Kept:
    """What a component has read of a Doc.

    Attributes:
        layers: ``(L + 1, n_tokens, 2P)``.
        cache: the component's. A component among the frozen ones of a training does not know that
            something learns from it; its listeners do.
        batch: where gradients go, while the Doc is in a batch that the component is trained on.
    """

    layers: Floats3d
    cache: LayerCache | None = None
    batch: ReferenceType[Gradients] | None = None  # weak: it has the Doc, which would never go

    @property
    def gradients(self) -> Gradients | None:
        """Where gradients go; None if nothing learns from them."""
        gradients = None if self.batch is None else self.batch()
        return gradients if gradients is not None and gradients.is_open else None


_kept: WeakKeyDictionary[Doc, dict[str, Kept]] = WeakKeyDictionary()


def keep_layers(
    doc: Doc,
    component: str,
    layers: Floats3d,
    cache: LayerCache,
    gradients: Gradients | None = None,
) -> None:
    """Note what a component has read of a Doc, until the Doc or the note is dropped.

    Args:
        doc: the Doc.
        component: the component's name.
        layers: ``(L + 1, n_tokens, 2P)``.
        cache: the component's.
        gradients: those of the batch that the Doc is in; None if the component only annotates,
            perhaps in the middle of a batch, whose gradients are expected still.
    """
    of_doc = _kept.setdefault(doc, {})
    before = of_doc[component].batch if component in of_doc else None
    of_doc[component] = Kept(layers, cache, before if gradients is None else ref(gradients))


def kept_layers(doc: Doc) -> dict[str, Kept]:
    """What components have read of a Doc, by their names."""
    return _kept.get(doc, {})


def drop_layers(doc: Doc) -> None:
    """Forget what components have read of a Doc."""
    _kept.pop(doc, None)
