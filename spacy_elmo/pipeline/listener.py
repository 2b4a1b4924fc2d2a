"""A layer in another component's model: its own mix of the biLM's layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, ref

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from . import extensions
from .gradients import Gradients
from .kept import Kept, kept_layers

# The components that listeners are linked to. spaCy's own list of a component's listeners is that
# of the last pipeline that it was put into.
_components: WeakKeyDictionary[ElmoListener, ref[Any]] = WeakKeyDictionary()


def link(listener: ElmoListener, component: Any) -> None:
    """Note that a listener is to get its layers from a component."""
    _components[listener] = ref(component)


def is_linked(component: Any) -> bool:
    """Whether there is a listener that is to get its layers from a component."""
    return any(linked() is component for linked in list(_components.values()))


class ElmoListener(Model[list[Doc], list[Floats2d]]):
    """Gets the layers of a biLM from an elmo component earlier in the pipeline, and mixes them.

    They are those that the component has kept of each Doc; while both are trained, it has noted
    there, too, where the gradients go.

    Args:
        upstream: name of the component.
        mix: `scalar_mix.ScalarMix`, this listener's own.

    Attributes:
        samples: Docs that shapes are being inferred with, which no component has read.
    """

    def __init__(self, upstream: str, mix: Model[list[Floats3d], list[Floats2d]]):
        super().__init__("elmo-listener", forward, init=init, layers=[mix], dims={"nO": None})
        self.upstream = upstream
        self.n_layers = 0
        self.samples: list[Doc] = []

    def _copy(self, seen: dict[int, Any] | None = None) -> ElmoListener:
        # What `Model.copy` calls, also for the parts of a larger model.
        copied = ElmoListener(self.upstream, self.layers[0]._copy(seen))
        if self.has_dim("nO"):
            copied.set_dim("nO", self.get_dim("nO"))
        copied.n_layers = self.n_layers
        return copied

    def set_dim(self, name: str, value: int, *, force: bool = False) -> None:
        """As thinc's; a width that is not yet that of a mix with weights can be changed."""
        super().set_dim(name, value, force=force or not self.layers[0].has_param("w"))

    def set_shape(self, n_layers: int, width: int) -> None:
        """What the component says of its biLM when they are linked.

        Other weights may be loaded after that, so the mix gets its own when it reads layers.
        """
        self.n_layers = n_layers
        if not self.layers[0].has_param("w"):
            self.set_dim("nO", width)

    def find(self, doc: Doc) -> Kept:
        """What the component has read of a Doc.

        Raises:
            ValueError: it has read nothing of it, or the Doc was retokenized since.
        """
        found = kept_layers(doc).get(self.upstream)
        if found is None and extensions.stored_by(doc) == self.upstream:
            found = Kept(extensions.get_layers(doc))
        if found is None and any(doc is sample for sample in self.samples):
            # Shapes are being inferred; the numbers do not matter.
            found = Kept(self.ops.alloc3f(self.n_layers, len(doc), self.get_dim("nO")))
        if found is None:
            raise ValueError(self._not_read())
        if found.layers.shape[1] != len(doc):
            raise ValueError(
                f"A Doc has {len(doc)} tokens, but the elmo component '{self.upstream}' has "
                f"read {found.layers.shape[1]}: it was retokenized since. Put what retokenizes "
                f"before '{self.upstream}'."
            )
        return found

    def batch_of(self, kept: Sequence[Kept]) -> Gradients | None:
        """Where the gradients of Docs go; None if the component does not learn from them.

        Raises:
            ValueError: it learns from some of them only.
        """
        batches = {found.gradients for found in kept}
        if len(batches) > 1:
            raise ValueError(
                f"A component learns from Docs that are not in the batch that '{self.upstream}' "
                f"has read. It has to learn from the Docs of the batch itself."
            )
        return next(iter(batches), None)

    def check(self, layers: Sequence[Floats3d]) -> None:
        """Raise a ValueError if the mix was made for layers of another number or width."""
        mix = self.layers[0]
        for found in layers:
            if mix.has_param("w") and found.shape[::2] != (
                len(mix.get_param("w")),
                mix.get_dim("nO"),
            ):
                raise ValueError(
                    f"A listener has learned from a biLM with {len(mix.get_param('w'))} layers of "
                    f"{mix.get_dim('nO')} numbers, but '{self.upstream}' has {found.shape[0]} of "
                    f"{found.shape[2]}. Use the weights that it was trained with, or train it anew."
                )

    def _not_read(self) -> str:
        return (
            f"A component listens to '{self.upstream}', which has not read the Doc: put an elmo "
            f"component of that name before it in the pipeline (or set the listener's 'upstream' "
            f"to its name), and do not disable it. If it is among the frozen_components of a "
            f"training, it has to be in annotating_components too. (A component that reads parts "
            f"of Docs as Docs of their own, as the entity_linker does, can listen through "
            f"spacy.Tok2VecListener.v1.)"
        )


def init(model: Any, X: Sequence[Doc] | None = None, Y: Any = None) -> None:
    """The Docs of this call are samples, which no component has read."""
    if X is None:
        return
    if model.has_dim("nO") is None:
        raise ValueError(
            f"A component listens to '{model.upstream}', but there is no elmo component of that "
            f"name before it in the pipeline, or its weights cannot be found."
        )
    model.samples = list(X)


def forward(
    model: Any, docs: Sequence[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    mix: Model[list[Floats3d], list[Floats2d]] = model.layers[0]
    kept = [model.find(doc) for doc in docs]
    gradients = model.batch_of(kept) if is_train else None
    if gradients is not None:
        layers = [gradients.layers(doc) for doc in docs]
    else:
        layers = [model.ops.asarray3f(found.layers) for found in kept]  # NumPy's, from bytes
        for found in kept if is_train else ():
            if found.cache is not None:  # of a component that is not told that something learns
                found.cache.enable()
    model.check(layers)
    Y, backprop_mix = mix(layers, is_train)

    def backprop(dY: list[Floats2d]) -> list[Doc]:
        d_layers = backprop_mix(dY)
        if gradients is not None:
            gradients.hear(docs, d_layers, mix)
        return []

    return Y, backprop
