"""A training batch, in which the gradients of all listeners are summed."""

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
        who: what computes the gradients.
        name: the elmo component's name.
    """
    return ValueError(
        f"{who} learns from a batch of '{name}' that is over, so that '{name}' would not learn "
        f"with it. Update '{name}' with these Docs first, as nlp.update does, or let it only "
        f"annotate them."
    )


class Batch:
    """The layers of a batch, and the sum of the listeners' gradients, which `finish` backpropagates
    through the biLM. Any of the listeners may learn from the batch, in any order.

    Copies and pickles are empty, so that a pipeline can be pickled in the middle of a training.

    Args:
        layers: ``(L + 1, n_tokens, 2P)`` for each Doc.
        backprop: backpropagates through the biLM; None if the biLM is frozen.
        losses: the losses of the training.
        name: key in ``losses`` under which listeners add their squared gradients.

    Attributes:
        has_gradients: a listener has learned from the batch.
        trains_bilm: the biLM needs gradients of the layers.
        is_closed: the batch accepts no more gradients.
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

    def __reduce__(self) -> Any:
        return Batch, ()

    def add(self, indices: Sequence[int], d_layers: Sequence[Floats3d]) -> None:
        """Add an `ElmoListener`'s gradients of the layers; none if the biLM is frozen.

        Args:
            indices: the Docs' indices in the batch.
            d_layers: a gradient for each of these Docs.

        Raises:
            ValueError: the biLM is trained, and the batch is closed.
        """
        self.has_gradients = not self.is_closed
        if self.trains_bilm:
            self._check_open()
            self._add(indices, d_layers, d_layers)

    def send(self, docs: Sequence[Doc], listeners: Sequence[Any], mix: MixModel) -> None:
        """Send spaCy's listeners the component's mix of the layers, which learns with them."""
        if not listeners:
            return
        self._tok2vec_listeners = listeners
        backprop_mix: Any
        tensors, backprop_mix = mix.begin_update(list(self.layers))

        def backprop(listener: Any, d_tensors: list[Floats2d]) -> list[Floats2d]:
            self._check_open()
            self.has_gradients = True
            self._add(range(len(docs)), backprop_mix(d_tensors, self.trains_bilm), d_tensors)
            listener.receive(None, None, None)
            return []

        batch_id = Tok2VecListener.get_batch_id(docs)
        for listener in listeners:
            listener.receive(batch_id, tensors, partial(backprop, listener))

    def _check_open(self) -> None:
        if self.is_closed:
            raise closed_batch("A listener", self._name)

    def _add(self, indices: Any, d_layers: Sequence[Any], gradients: Sequence[Any]) -> None:
        if self._losses is not None:
            self._losses[self._name] += sum(float((d**2).sum()) for d in gradients)
        for i, d in zip(indices, d_layers, strict=False):  # there are none for a frozen biLM
            self._d_layers[i] = self._d_layers[i] + d if i in self._d_layers else d

    def finish(self) -> None:
        """Backpropagate the sum of the gradients, and close the batch."""
        layers, backprop, d_layers = self.layers, self._backprop, self._d_layers
        self.close()  # first, so that training can go on if the biLM fails
        if d_layers and backprop is not None:
            backprop([d_layers.get(i, 0 * x) for i, x in enumerate(layers)])

    def close(self) -> None:
        """Accept no more gradients; spaCy's listeners that have not used the batch forget it."""
        self.is_closed, self.has_gradients = True, False
        for listener in self._tok2vec_listeners:
            listener.receive(None, None, None)  # type: ignore[arg-type]
        self.layers, self._backprop, self._d_layers, self._tok2vec_listeners = (), None, {}, ()
