"""The gradients of the components that listen to ELMo, summed for one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from .scalar_mix import penalty

AddLoss = Callable[[Any], None]


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
        self._backprop_tensors: Callable[..., list[Floats3d]] | None = None
        self._d_tensors: dict[int, Any] = {}

    def __reduce__(self) -> tuple[type[Batch], tuple[()]]:
        return Batch, ()

    def __contains__(self, doc: Doc) -> bool:
        return id(doc) in self._index

    @property
    def trains_bilm(self) -> bool:
        """Whether the biLM needs the gradients of its layers."""
        return self._backprop_layers is not None

    def layers(self, doc: Doc) -> Floats3d:
        """The layers of a Doc of the batch."""
        return self._layers[self._index[id(doc)]]

    def add_d_layers(
        self,
        docs: Sequence[Doc],
        d_layers: Sequence[Floats3d],
        mix: Model[list[Floats3d], list[Floats2d]],
    ) -> None:
        """Accumulate an ElmoListener's gradients of the layers of some Docs, and its loss.

        Without `trains_bilm` there need to be no gradients.
        """
        self._has_gradients = True
        self._add_loss(penalty(mix))
        if self.trains_bilm:
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
        if self.trains_bilm or mix.attrs["settings"].trainable:
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
                d_tensors = _fill(self._d_tensors, self._tensors)
                d_layers = self._backprop_tensors(d_tensors, self.trains_bilm)
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
