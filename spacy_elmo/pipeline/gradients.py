"""What a component hands to its listeners to learn from, and what they say to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

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
        self._places = {id(doc): place for place, doc in enumerate(docs)}
        self._is_heard = False
        self._of_layers: dict[int, Any] = {}
        self._listeners: Sequence[Tok2VecListener] = ()
        self._tensors: Sequence[Any] = ()
        self._backprop_tensors: Callable[[list[Floats2d]], list[Floats3d]] | None = None
        self._of_tensors: dict[int, Any] = {}

    def __reduce__(self) -> tuple[type[Gradients], tuple[()]]:
        return Gradients, ()

    @property
    def is_open(self) -> bool:
        """Whether there is a batch that has not been backpropagated."""
        return bool(self._places)

    def layers(self, doc: Doc) -> Floats3d:
        """What the biLM has read of a Doc of the batch."""
        return self._layers[self._places[id(doc)]]

    def hear(
        self,
        docs: Sequence[Doc],
        d_layers: Sequence[Floats3d],
        mix: Model[list[Floats3d], list[Floats2d]],
    ) -> None:
        """What an ElmoListener with a mix calls with the gradients of some Docs' layers."""
        self._is_heard = True
        self._add_loss(_squares(d_layers) + penalty(mix))
        if self._backprop_layers is not None:
            _add(self._of_layers, [self._places[id(doc)] for doc in docs], d_layers)

    def hand_tensors(
        self,
        listeners: Sequence[Tok2VecListener],
        mix: Model[list[Floats3d], list[Floats2d]],
    ) -> None:
        """Let spaCy's listeners learn from one mix, which learns with them."""
        if not listeners:
            return
        self._listeners = listeners
        self._tensors, self._backprop_tensors = mix.begin_update(list(self._layers))
        batch_id = Tok2VecListener.get_batch_id(self._docs)
        for listener in listeners:
            hear: Any = partial(self._hear_of_tensors, listener, mix)
            listener.receive(batch_id, self._tensors, hear)

    def _hear_of_tensors(
        self, listener: Any, mix: Model, d_tensors: Sequence[Any]
    ) -> list[Floats2d]:
        """What a Tok2VecListener calls with its gradients; it is done with its batch then."""
        self._is_heard = True
        self._add_loss(_squares(d_tensors))
        if not self._of_tensors:  # once, though several share the mix
            self._add_loss(penalty(mix))
        _add(self._of_tensors, range(len(self._tensors)), d_tensors)
        listener.receive(None, None, None)
        return []

    def backpropagate(self) -> None:
        """Backpropagate what was said, and be done with the batch; nothing if nothing was."""
        if not self._is_heard:
            return
        try:
            if self._of_tensors and self._backprop_tensors is not None:
                d_layers = self._backprop_tensors(_fill(self._of_tensors, self._tensors))
                if self._backprop_layers is not None:
                    _add(self._of_layers, range(len(d_layers)), d_layers)
            if self._of_layers and self._backprop_layers is not None:
                self._backprop_layers(_fill(self._of_layers, self._layers))
        finally:  # a batch that there was no memory for can be left out
            self.drop()

    def drop(self) -> None:
        """Be done with the batch; listeners that have had nothing to say lose it too."""
        for listener in self._listeners:
            listener.receive(None, None, None)  # type: ignore[arg-type]
        self.__init__()  # type: ignore[misc]


def _squares(gradients: Sequence[Any]) -> float:
    return sum(float((gradient**2).sum()) for gradient in gradients)


def _add(sums: dict[int, Any], places: Sequence[int], gradients: Sequence[Any]) -> None:
    for place, gradient in zip(places, gradients, strict=True):
        sums[place] = sums[place] + gradient if place in sums else gradient


def _fill(sums: dict[int, Any], like: Sequence[Any]) -> list[Any]:
    """The sums in order; zeros where nobody said anything."""
    return [sums[place] if place in sums else 0 * array for place, array in enumerate(like)]
