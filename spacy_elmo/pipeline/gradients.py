"""The gradients of the components that listen to ELMo, summed for one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.types import Floats2d, Floats3d

from .scalar_mix import MixModel, penalty


class BatchGradients:
    """The gradients of a batch's listeners, until the component backpropagates their sum.

    It does not matter which listeners compute gradients, or in which order. Copies and pickles
    are empty, so that a pipeline can be pickled at any point of a training.

    Args:
        docs: the Docs of the batch.
        layers: ``(L + 1, n_tokens, 2P)`` for each Doc.
        backprop_layers: backpropagates through the biLM; None if it is not trained.
        losses: those of the training.
        name: the component's in these, to which each listener adds the penalty of its mix, and
            the sum of its squared gradients if the component learns from them.

    Attributes:
        are_there: a listener has computed some.
        trains_bilm: the biLM needs the gradients of its layers.
    """

    def __init__(
        self,
        docs: Sequence[Doc] = (),
        layers: Sequence[Any] = (),
        backprop_layers: Callable[[list[Floats3d]], list[Doc]] | None = None,
        losses: dict[str, Any] | None = None,
        name: str = "",
    ):
        self.docs, self._layers, self._backprop_layers = docs, layers, backprop_layers
        self.trains_bilm = backprop_layers is not None
        self._losses, self._name = {} if losses is None else losses, name
        self.are_there = False
        self._index = {id(doc): i for i, doc in enumerate(docs)}
        self._d_layers: dict[int, Any] = {}
        self._listeners: Sequence[Tok2VecListener] = ()
        self._backprop_tensors: Callable[..., list[Floats3d]] | None = None
        self._d_tensors: Sequence[Any] = ()

    def __reduce__(self) -> tuple[type[BatchGradients], tuple[()]]:
        return BatchGradients, ()

    def __contains__(self, doc: Doc) -> bool:
        return id(doc) in self._index

    def layers(self, doc: Doc) -> Floats3d:
        """The layers of a Doc of the batch."""
        return self._layers[self._index[id(doc)]]

    def add_d_layers(
        self, docs: Sequence[Doc], d_layers: Sequence[Floats3d], mix: MixModel
    ) -> None:
        """Accumulate an ElmoListener's gradients of the layers of some Docs, and its loss.

        Without `trains_bilm` there need to be no gradients.
        """
        self.are_there = True
        self._add_loss(penalty(mix))
        if self.trains_bilm:
            self._add_loss(_sum_of_squares(d_layers))
            self._add([self._index[id(doc)] for doc in docs], d_layers)

    def send_tensors(self, listeners: Sequence[Tok2VecListener], mix: MixModel) -> None:
        """Give spaCy's listeners the component's own mix of the layers, which learns with them."""
        if not listeners:
            return
        self._listeners = listeners
        tensors, self._backprop_tensors = mix.begin_update(list(self._layers))
        batch_id = Tok2VecListener.get_batch_id(self.docs)
        for listener in listeners:
            add: Any = partial(self._add_d_tensors, listener, mix)
            listener.receive(batch_id, tensors, add)

    def _add_d_tensors(
        self, listener: Any, mix: MixModel, d_tensors: Sequence[Any]
    ) -> list[Floats2d]:
        """Accumulate a Tok2VecListener's gradients, after which it is done with the batch."""
        self.are_there = True
        if self.trains_bilm or mix.attrs["settings"].trainable:
            self._add_loss(_sum_of_squares(d_tensors))
        if not self._d_tensors:  # once, though several listeners share the mix
            self._add_loss(penalty(mix))
            self._d_tensors = d_tensors
        else:
            self._d_tensors = [a + b for a, b in zip(self._d_tensors, d_tensors, strict=True)]
        listener.receive(None, None, None)
        return []

    def _add(self, indices: Iterable[int], d_layers: Iterable[Any]) -> None:
        for i, gradient in zip(indices, d_layers, strict=True):
            self._d_layers[i] = self._d_layers[i] + gradient if i in self._d_layers else gradient

    def _add_loss(self, loss: Any) -> None:
        """CuPy scalars stay on the GPU until they are printed."""
        self._losses[self._name] += float(loss) if isinstance(loss, np.generic) else loss

    def backprop(self) -> None:
        """Backpropagate the sum of the gradients."""
        if self._d_tensors and self._backprop_tensors is not None:
            d_layers = self._backprop_tensors(self._d_tensors, self.trains_bilm)
            self._add(range(len(d_layers)), d_layers)
        if self._d_layers and self._backprop_layers is not None:
            every = enumerate(self._layers)
            d_layers = [self._d_layers[i] if i in self._d_layers else 0 * x for i, x in every]
            self._backprop_layers(d_layers)

    def close(self) -> None:
        """Let spaCy's listeners that have not used the batch forget it."""
        for listener in self._listeners:
            listener.receive(None, None, None)  # type: ignore[arg-type]


def _sum_of_squares(arrays: Sequence[Any]) -> Any:
    return sum((array**2).sum() for array in arrays)
