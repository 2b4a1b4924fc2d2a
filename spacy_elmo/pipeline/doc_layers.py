"""The layers of the Docs that one elmo component has read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np
from spacy.attrs import ORTH
from spacy.language import Language
from spacy.tokens import Doc
from thinc.types import Floats3d

from .gradients import Batch

if TYPE_CHECKING:
    from .bilm_shim import BiLMShim


class DocLayers:
    """What one elmo component shares with its listeners: layers of Docs, and the current batch.

    Layers live as long as their Doc. They are not stored on the Doc, where they would be copied
    and serialized with it. For the same reason copies and pickles of a DocLayers are empty; the
    copies of a component and of its listeners still share one.

    Args:
        name: the component's.

    Attributes:
        batch: the last batch that the component was updated with.
        listeners: the `ElmoListener`s linked to the component, in any pipeline that it is in.
        are_known: what they have learned from was looked at since they were linked or loaded.
    """

    def __init__(self, name: str = "") -> None:
        self._layers: WeakKeyDictionary[Doc, tuple[Floats3d, bytes]] = WeakKeyDictionary()
        self.name = name
        self.batch = Batch()
        self.listeners: WeakSet[Any] = WeakSet()
        self.are_known = False
        self._nlp: ref[Language] | None = None
        self._shim: ref[BiLMShim] | None = None

    def __reduce__(self) -> tuple[type[DocLayers], tuple[str]]:
        return DocLayers, (self.name,)

    def describe(self, elmo: Any) -> None:
        """Note the component's name, its pipeline if that is known, and its shim; none is held."""
        nlp = elmo.tensor_conflicts.nlp
        self.name, self._shim = elmo.name, ref(elmo.shim)
        self._nlp = None if nlp is None else ref(nlp)

    @property
    def nlp(self) -> Language | None:
        """The pipeline that it is in; None if that is not known."""
        return None if self._nlp is None else self._nlp()

    @property
    def shim(self) -> BiLMShim | None:
        """The component's shim, as long as it exists."""
        return None if self._shim is None else self._shim()

    def is_called(self, name: str) -> bool:
        """Whether the component of that name in the pipeline is this one."""
        component = None if self.nlp is None else dict(self.nlp.components).get(name)
        return getattr(component, "doc_layers", None) is self

    @property
    def is_gone(self) -> bool:
        """Whether the component does not exist any more."""
        return self._shim is not None and self._shim() is None

    def start(self, batch: Batch) -> None:
        """Take over a batch that the component has just been updated with."""
        self.batch = batch
        for doc in batch.docs:
            self.add(doc, batch.layers(doc))

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

    def turn_on_cache(self) -> None:
        """Something learns from the layers; a component frozen in a training does not know."""
        if self.shim is not None:
            self.shim.cache.enable()


def token_hash(doc: Doc) -> bytes:
    """Number and hash of a Doc's tokens."""
    hashes = doc.to_array([ORTH]).astype(np.uint64)
    positions = np.arange(1, len(hashes) + 1, dtype=np.uint64)
    return np.uint64(len(hashes)).tobytes() + (hashes * (2 * positions + 1)).sum().tobytes()
