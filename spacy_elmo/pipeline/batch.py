"""A batch of a training, whose gradients the listeners add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.types import Floats2d, Floats3d

from .scalar_mix import MixModel


def closed_batch(who: str, name: str) -> ValueError:
    """The error for gradients that would be lost.

    Args:
        who: learns.
        name: the elmo component's.
    """
    return ValueError(
        f"{who} learns from a batch of '{name}' that is over, so that '{name}' would not learn "
        f"with it. Update '{name}' with these Docs first, as nlp.update does, or let it only "
        f"annotate them."
    )


class Batch:
    """The layers of a batch, and the gradients of its listeners until `finish` backpropagates their
    sum. It does not matter which listeners compute gradients, or in which order.

    Copies and pickles are empty, so that a pipeline can be pickled at any point of a training.

    Args:
        layers: ``(L + 1, n_tokens, 2P)`` of each Doc.
        backprop: backpropagates through the biLM; None if it is frozen.
        losses: of the training.
        name: the component's in these, where each listener that it learns from adds its squared
            gradients.

    Attributes:
        has_gradients: a listener has added some.
        trains_bilm: gradients of the layers are needed.
        is_closed: none are awaited any more.
    """

    def __init__(
        self,
        layers: Sequence[Any] = (),
        backprop: Callable[[list[Floats3d]], Any] | None = None,
        losses: dict[str, Any] | None = None,
        name: str = "",
    ):
        self.layers, self._backprop = layers, backprop
        self.trains_bilm, self.has_gradients = backprop is not None, False
        self.is_closed = not layers
        self._losses, self._name = losses, name
        self._d_layers: dict[int, Any] = {}
        self._tok2vec_listeners: Sequence[Tok2VecListener] = ()
        self._backprop_tensors: Callable[..., list[Floats3d]] | None = None
        self._d_tensors: list[Any] = []

    def __reduce__(self) -> Any:
        return Batch, ()

    def add(self, indices: Sequence[int], d_layers: Sequence[Floats3d]) -> None:
        """Add an `ElmoListener`'s gradients of the layers of some Docs, none if the biLM is
        frozen; a ValueError if the biLM is not, and the batch is closed."""
        self.has_gradients = not self.is_closed
        if self.trains_bilm:
            self._check_open()
            self._add_loss(d_layers)
            self._sum(indices, d_layers)

    def send(self, docs: Sequence[Doc], listeners: Sequence[Any], mix: MixModel) -> None:
        """Give spaCy's listeners the component's mix of the layers, which learns with them."""
        if not listeners:
            return
        self._tok2vec_listeners = listeners
        tensors, self._backprop_tensors = mix.begin_update(list(self.layers))
        batch_id = Tok2VecListener.get_batch_id(docs)
        for listener in listeners:
            listener.receive(batch_id, tensors, partial(self._add_d_tensors, listener))

    def _add_d_tensors(self, listener: Any, d_tensors: list[Any]) -> list[Floats2d]:
        self._check_open()
        self.has_gradients = True
        self._add_loss(d_tensors)
        before = self._d_tensors or [0] * len(d_tensors)
        self._d_tensors = [a + b for a, b in zip(before, d_tensors, strict=True)]
        listener.receive(None, None, None)
        return []

    def _check_open(self) -> None:
        if self.is_closed:
            raise closed_batch("A listener", self._name)

    def _sum(self, indices: Sequence[int], d_layers: Sequence[Any]) -> None:
        for i, gradient in zip(indices, d_layers, strict=True):
            self._d_layers[i] = self._d_layers[i] + gradient if i in self._d_layers else gradient

    def _add_loss(self, gradients: Sequence[Any]) -> None:
        if self._losses is not None:
            self._losses[self._name] += sum(float((d**2).sum()) for d in gradients)

    def finish(self) -> None:
        """Backpropagate the sum of the gradients, and close the batch."""
        layers, backprop, backprop_tensors = self.layers, self._backprop, self._backprop_tensors
        d_tensors = self._d_tensors
        self.close()  # first: a batch that fails can be skipped
        if d_tensors and backprop_tensors is not None:
            d_layers = backprop_tensors(d_tensors, backprop is not None)
            self._sum(range(len(d_layers)), d_layers)
        if self._d_layers and backprop is not None:
            backprop([self._d_layers.get(i, 0 * x) for i, x in enumerate(layers)])
        self._d_layers = {}

    def close(self) -> None:
        """Await no more gradients; spaCy's listeners that have not used the batch forget it."""
        self.is_closed, self.has_gradients = True, False
        for listener in self._tok2vec_listeners:
            listener.receive(None, None, None)  # type: ignore[arg-type]
        self.layers, self._backprop, self._backprop_tensors = (), None, None
        self._d_tensors, self._tok2vec_listeners = [], ()
