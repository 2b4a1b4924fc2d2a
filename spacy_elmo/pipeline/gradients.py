"""What a component hands to its listeners to learn from, and what they say to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from .listener import Batch, ElmoListener
from .scalar_mix import penalty


class Gradients:
    """The gradients of the listeners for one batch, until the component backpropagates them.

    Which of the listeners learn something from a batch, and in which order, does not matter. A
    pickle of it is empty, so that pipelines can be pickled at any time of a training.

    Args:
        docs: the batch.
        layers: what the biLM has read, ``(L + 1, n_tokens, 2P)`` of each Doc.
        backprop_layers: backpropagates the biLM; None for one that does not learn.
        add_loss: is called with what each listener adds to the component's loss: its squared
            gradients, and the penalty of its mix.
    """

    def __init__(
        self,
        docs: Sequence[Doc] = (),
        layers: Sequence[Any] = (),
        backprop_layers: Callable[[list[Floats3d]], list[Doc]] | None = None,
        add_loss: Callable[[float], None] = lambda loss: None,
    ):
        self._docs, self._layers, self._backprop_layers = docs, layers, backprop_layers
        self._add_loss = add_loss
        self._of_layers: dict[int, Any] = {}
        self._tensors: Sequence[Any] = ()
        self._backprop_tensors: Callable[[list[Floats2d]], list[Floats3d]] | None = None
        self._of_tensors: dict[int, Any] = {}

    def __reduce__(self) -> tuple[type[Gradients], tuple[()]]:
        return Gradients, ()

    def hand_layers(self, listeners: Sequence[ElmoListener]) -> None:
        """Let listeners learn from the layers, each with its own mix."""
        for listener in listeners:
            hear = partial(self._hear_of_layers, listener)
            listener.batch = Batch(self._docs, self._layers, hear)

    def hand_tensors(
        self,
        listeners: Sequence[Tok2VecListener],
        mix: Model[list[Floats3d], list[Floats2d]],
    ) -> None:
        """Let listeners learn from one mix, which learns with them."""
        if not listeners:
            return
        self._tensors, self._backprop_tensors = mix.begin_update(list(self._layers))
        batch_id = Tok2VecListener.get_batch_id(self._docs)
        for listener in listeners:
            hear: Any = partial(self._hear_of_tensors, listener, mix)
            listener.receive(batch_id, self._tensors, hear)

    def _hear_of_layers(
        self, listener: ElmoListener, places: Sequence[int], d_layers: Sequence[Any]
    ) -> None:
        """What an ElmoListener calls with its gradient; it is done with its batch then."""
        self._add_loss(_squares(d_layers) + penalty(listener.layers[0]))
        if self._backprop_layers is not None:
            _add(self._of_layers, places, d_layers)
        listener.batch = Batch()

    def _hear_of_tensors(
        self, listener: Any, mix: Model, d_tensors: Sequence[Any]
    ) -> list[Floats2d]:
        """What a Tok2VecListener calls with its gradient; it is done with its batch then."""
        self._add_loss(_squares(d_tensors))
        if not self._of_tensors:  # once, though several share the mix
            self._add_loss(penalty(mix))
        _add(self._of_tensors, range(len(self._tensors)), d_tensors)
        listener.receive(None, None, None)
        return []

    def backpropagate(self) -> None:
        """Backpropagate what was said, once; nothing happens while nothing was."""
        if not self._of_tensors and not self._of_layers:
            return
        if self._of_tensors and self._backprop_tensors is not None:
            d_layers = self._backprop_tensors(_fill(self._of_tensors, self._tensors))
            if self._backprop_layers is not None:
                _add(self._of_layers, range(len(d_layers)), d_layers)
        if self._of_layers and self._backprop_layers is not None:
            self._backprop_layers(_fill(self._of_layers, self._layers))
        self.__init__()  # type: ignore[misc]


def _squares(gradients: Sequence[Any]) -> float:
    return sum(float((gradient**2).sum()) for gradient in gradients)


def _add(sums: dict[int, Any], places: Sequence[int], gradients: Sequence[Any]) -> None:
    for place, gradient in zip(places, gradients, strict=True):
        sums[place] = sums[place] + gradient if place in sums else gradient


def _fill(sums: dict[int, Any], like: Sequence[Any]) -> list[Any]:
    """The sums in order; zeros where nobody said anything."""
    return [sums[place] if place in sums else 0 * array for place, array in enumerate(like)]
