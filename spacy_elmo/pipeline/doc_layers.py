"""The layers of the Docs that one elmo component has read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np
from spacy.attrs import ORTH
from spacy.language import Language
from spacy.tokens import Doc
from thinc.types import Floats3d

from .gradients import BatchGradients

if TYPE_CHECKING:
    from .bilm_layer import BiLMShim


class DocLayers:
    """State that one elmo component shares with its listeners: layers of Docs, the current batch.

    Layers live as long as their Doc. They are not stored on the Doc, where they would be copied
    and serialized with it. For the same reason copies and pickles of a DocLayers are empty; the
    copies of a component and of its listeners still share one.

    Args:
        name: the component's.

    Attributes:
        batch: the last batch that the component was updated with, until it is backpropagated.
        listeners: the `ElmoListener`s linked to the component, in any pipeline that it is in.
        are_known: what they have learned from was looked at since they were linked or loaded.
        nlp: returns the component's pipeline, as long as it exists; None, too, if the component
            was sourced, copied or unpickled, and does not know the one that it is in.
        shim: returns the component's shim, as long as it exists.
    """

    def __init__(self, name: str = "") -> None:
        self._layers: WeakKeyDictionary[Doc, tuple[Floats3d, bytes]] = WeakKeyDictionary()
        self.name = name
        self.batch = BatchGradients()
        self.listeners: WeakSet[Any] = WeakSet()
        self.are_known = False
        self.nlp: Callable[[], Language | None] = lambda: None
        self.shim: Callable[[], BiLMShim | None] = lambda: None

    def __reduce__(self) -> tuple[type[DocLayers], tuple[str]]:
        return DocLayers, (self.name,)

    def describe(self, name: str, shim: BiLMShim) -> None:
        """Note the component's name and shim as they are now; the shim notes the name too."""
        self.name, self.shim, shim.component = name, ref(shim), name

    def start(self, batch: BatchGradients) -> None:
        """Take over a batch that the component has just been updated with."""
        self.batch = batch
        for doc in batch.docs:
            self.add(doc, batch.layers(doc))

    def end_batch(self, with_gradients: bool = True) -> None:
        """Backpropagate the gradients of the batch, unless they are to be dropped."""
        batch, self.batch = self.batch, BatchGradients()  # one that fails can be skipped
        batch.close()
        if with_gradients:
            batch.backprop()

    def add(self, doc: Doc, layers: Floats3d) -> None:
        """Store the layers ``(L + 1, n_tokens, 2P)`` of a Doc, for as long as it exists."""
        self._layers[doc] = layers, token_hash(doc)

    def __contains__(self, doc: Doc) -> bool:
        return doc in self._layers

    def get(self, doc: Doc) -> Floats3d | None:
        """The layers of a Doc, None if the component has not read it.

        Raises:
            ValueError: the Doc was retokenized since.
        """
        layers, read = self._layers.get(doc, (None, b""))
        if layers is not None and read != token_hash(doc):
            raise ValueError(
                f"A Doc was retokenized since the elmo component '{self.name}' has read it, so its "
                f"layers no longer fit its tokens. Put the component that retokenizes before "
                f"'{self.name}'."
            )
        return layers

    def remove(self, doc: Doc) -> None:
        """Drop the layers of a Doc, if there are any."""
        self._layers.pop(doc, None)


def token_hash(doc: Doc) -> bytes:
    """Number and hash of a Doc's tokens."""
    hashes = doc.to_array([ORTH]).astype(np.uint64)
    positions = np.arange(1, len(hashes) + 1, dtype=np.uint64)
    return np.uint64(len(hashes)).tobytes() + (hashes * (2 * positions + 1)).sum().tobytes()
