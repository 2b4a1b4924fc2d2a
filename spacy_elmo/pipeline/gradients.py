"""What listeners leave for the component to backpropagate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spacy.tokens import Doc
from thinc.types import Floats2d


class Gradients:
    """What listeners have to say to a batch, until the component backpropagates it.

    A pickle of it is empty, so that pipelines can be pickled at any time of a training.

    Args:
        tensors: what the listeners were given.
        backprop: backpropagates the sum of what they say.
    """

    def __init__(
        self,
        tensors: Sequence[Any] = (),
        backprop: Callable[[list[Floats2d]], list[Doc]] | None = None,
    ):
        self._sums = [0 * tensor for tensor in tensors]
        self._backprop = backprop
        self._is_empty = True

    def __reduce__(self) -> tuple[type[Gradients], tuple[()]]:
        return Gradients, ()

    def add(self, gradients: Sequence[Any]) -> float:
        """Add what a listener says, and return its sum of squares."""
        self._is_empty = False
        for total, gradient in zip(self._sums, gradients, strict=True):
            total += gradient
        return sum(float((gradient**2).sum()) for gradient in gradients)

    def backpropagate(self) -> None:
        """Backpropagate what was added, once."""
        if self._backprop is not None and not self._is_empty:
            self._backprop(self._sums)
            self._backprop = None
