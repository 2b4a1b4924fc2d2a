"""What listeners leave for the component to backpropagate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spacy.tokens import Doc
from thinc.types import Floats2d, Floats3d


class Gradients:
    """What listeners have to say to a batch, until the component backpropagates it.

    A pickle of it is empty, so that pipelines can be pickled at any time of a training.

    Args:
        layers: what the biLM has read; ElmoListeners speak of these.
        backprop_layers: backpropagates the biLM; None for a frozen one.
    """

    def __init__(
        self,
        layers: Sequence[Any] = (),
        backprop_layers: Callable[[list[Floats3d]], list[Doc]] | None = None,
    ):
        self._layers, self._backprop_layers = layers, backprop_layers
        self._of_layers: dict[int, Any] = {}
        self._of_tensors: dict[int, Any] = {}
        self.mixed((), None)

    def mixed(
        self,
        tensors: Sequence[Any],
        backprop_tensors: Callable[[list[Floats2d]], list[Floats3d]] | None,
    ) -> None:
        """Note the component's own mix of the layers, of which Tok2VecListeners speak."""
        self._tensors, self._backprop_tensors = tensors, backprop_tensors

    def __reduce__(self) -> tuple[type[Gradients], tuple[()]]:
        return Gradients, ()

    def add_to_layers(self, places: Sequence[int], gradients: Sequence[Any]) -> None:
        """Add what a listener says of the layers of some Docs."""
        if self._backprop_layers is not None:
            _add(self._of_layers, places, gradients)

    def add_to_tensors(self, gradients: Sequence[Any]) -> None:
        """Add what a listener says of the mixed vectors of all Docs."""
        _add(self._of_tensors, range(len(self._tensors)), gradients)

    def backpropagate(self) -> None:
        """Backpropagate what was added, once; nothing happens while nothing was."""
        if not self._of_tensors and not self._of_layers:
            return
        if self._of_tensors and self._backprop_tensors is not None:
            d_layers = self._backprop_tensors(_fill(self._of_tensors, self._tensors))
            self.add_to_layers(range(len(d_layers)), d_layers)
        if self._of_layers and self._backprop_layers is not None:
            self._backprop_layers(_fill(self._of_layers, self._layers))
        self.__init__()  # type: ignore[misc]


def _add(sums: dict[int, Any], places: Sequence[int], gradients: Sequence[Any]) -> None:
    for place, gradient in zip(places, gradients, strict=True):
        sums[place] = sums[place] + gradient if place in sums else gradient


def _fill(sums: dict[int, Any], like: Sequence[Any]) -> list[Any]:
    """The sums in order; zeros where nobody said anything."""
    return [sums[place] if place in sums else 0 * array for place, array in enumerate(like)]
