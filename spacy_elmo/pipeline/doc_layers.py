"""The layers of the Docs that one elmo component has read, and the gradients that come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np
from spacy.attrs import ORTH
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from .layer_cache import LayerCache
from .scalar_mix import penalty

AddLoss = Callable[[Any], None]


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
        cache: the component's.
        nlp: the pipeline that it is in, for errors; None if that is not known.
    """

    def __init__(self, name: str = "") -> None:
        self._layers: WeakKeyDictionary[Doc, tuple[Floats3d, bytes]] = WeakKeyDictionary()
        self.name = name
        self.batch = Batch()
        self.listeners: WeakSet[Any] = WeakSet()
        self.cache: LayerCache | None = None
        self.nlp: ref[Language] | None = None

    def __reduce__(self) -> tuple[type[DocLayers], tuple[str]]:
        return DocLayers, (self.name,)

    def start(self, batch: Batch, cache: LayerCache) -> None:
        """Take over a batch that the component has just been updated with."""
        self.batch, self.cache = batch, cache
        for doc in batch.docs:
            self.add(doc, batch.layers(doc))

    def add(self, doc: Doc, layers: Floats3d) -> None:
        """Store the layers ``(L + 1, n_tokens, 2P)`` of a Doc, for as long as it exists."""
        self._layers[doc] = layers, token_hash(doc)

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
        if self.cache is not None:
            self.cache.enable()


class Batch:
    """The gradients of a batch's listeners, until the component backpropagates their sum.

    It does not matter which listeners compute gradients, or in which order. Copies and pickles
    are empty, so that a pipeline can be pickled at any point of a training.

    Args:
        docs: the Docs of the batch.
        layers: ``(L + 1, n_tokens, 2P)`` for each Doc.
        backprop_layers: backpropagates through the biLM; None if it is not trained.
        add_loss: adds a number to the component's loss: for each listener the penalty of its mix,
            and the sum of its squared gradients if the component learns from them. They may be
            arrays on a GPU, which it should not wait for.
    """

    def __init__(
        self,
        docs: Sequence[Doc] = (),
        layers: Sequence[Any] = (),
        backprop_layers: Callable[[list[Floats3d]], list[Doc]] | None = None,
        add_loss: AddLoss = lambda loss: None,
    ):
        self.docs, self._layers, self._backprop_layers = docs, layers, backprop_layers
        self._add_loss = add_loss
        self._index = {id(doc): i for i, doc in enumerate(docs)}
        self._has_gradients = False
        self._d_layers: dict[int, Any] = {}
        self._listeners: Sequence[Tok2VecListener] = ()
        self._tensors: Sequence[Any] = ()
        self._backprop_tensors: Callable[[list[Floats2d]], list[Floats3d]] | None = None
        self._d_tensors: dict[int, Any] = {}

    def __reduce__(self) -> tuple[type[Batch], tuple[()]]:
        return Batch, ()

    def __contains__(self, doc: Doc) -> bool:
        return id(doc) in self._index

    def layers(self, doc: Doc) -> Floats3d:
        """The layers of a Doc of the batch."""
        return self._layers[self._index[id(doc)]]

    def add_d_layers(
        self,
        docs: Sequence[Doc],
        d_layers: Sequence[Floats3d],
        mix: Model[list[Floats3d], list[Floats2d]],
    ) -> None:
        """Accumulate an ElmoListener's gradients of the layers of some Docs, and its loss."""
        self._has_gradients = True
        self._add_loss(penalty(mix))
        if self._backprop_layers is not None:
            self._add_loss(_sum_of_squares(d_layers))
            _add(self._d_layers, [self._index[id(doc)] for doc in docs], d_layers)

    def send_tensors(
        self,
        listeners: Sequence[Tok2VecListener],
        mix: Model[list[Floats3d], list[Floats2d]],
    ) -> None:
        """Give spaCy's listeners the component's own mix of the layers, which learns with them."""
        if not listeners:
            return
        self._listeners = listeners
        self._tensors, self._backprop_tensors = mix.begin_update(list(self._layers))
        batch_id = Tok2VecListener.get_batch_id(self.docs)
        for listener in listeners:
            add: Any = partial(self._add_d_tensors, listener, mix)
            listener.receive(batch_id, self._tensors, add)

    def _add_d_tensors(self, listener: Any, mix: Model, d_tensors: Sequence[Any]) -> list[Floats2d]:
        """Accumulate a Tok2VecListener's gradients, after which it is done with the batch."""
        self._has_gradients = True
        if self._backprop_layers is not None or mix.attrs["settings"].trainable:
            self._add_loss(_sum_of_squares(d_tensors))
        if not self._d_tensors:  # once, though several listeners share the mix
            self._add_loss(penalty(mix))
        _add(self._d_tensors, range(len(self._tensors)), d_tensors)
        listener.receive(None, None, None)
        return []

    def backprop(self) -> None:
        """Backpropagate the sum of the gradients and close the batch; nothing without any."""
        if not self._has_gradients:
            return
        try:
            if self._d_tensors and self._backprop_tensors is not None:
                d_layers = self._backprop_tensors(_fill(self._d_tensors, self._tensors))
                if self._backprop_layers is not None:
                    _add(self._d_layers, range(len(d_layers)), d_layers)
            if self._d_layers and self._backprop_layers is not None:
                self._backprop_layers(_fill(self._d_layers, self._layers))
        finally:  # a batch that did not fit into memory can be skipped
            self.close()

    def close(self) -> None:
        """Empty the batch; spaCy's listeners that have not used it lose it too."""
        for listener in self._listeners:
            listener.receive(None, None, None)  # type: ignore[arg-type]
        self.__init__()  # type: ignore[misc]


def token_hash(doc: Doc) -> bytes:
    """Number and hash of a Doc's tokens."""
    hashes = doc.to_array([ORTH]).astype(np.uint64)
    positions = np.arange(1, len(hashes) + 1, dtype=np.uint64)
    return np.uint64(len(hashes)).tobytes() + (hashes * (2 * positions + 1)).sum().tobytes()


def add_loss(losses: dict[str, Any], name: str, loss: Any) -> None:
    """Add to a component's loss; CuPy scalars stay on the GPU until they are printed."""
    losses[name] = losses[name] + (float(loss) if isinstance(loss, np.generic) else loss)


def _sum_of_squares(arrays: Sequence[Any]) -> Any:
    return sum((array**2).sum() for array in arrays)


def _add(sums: dict[int, Any], indices: Sequence[int], gradients: Sequence[Any]) -> None:
    for i, gradient in zip(indices, gradients, strict=True):
        sums[i] = sums[i] + gradient if i in sums else gradient


def _fill(sums: dict[int, Any], like: Sequence[Any]) -> list[Any]:
    """The sums in order, zeros where there is no gradient."""
    return [sums[i] if i in sums else 0 * array for i, array in enumerate(like)]
