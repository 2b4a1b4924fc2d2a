"""A layer in another component's model: its own mix of the biLM's layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from . import extensions
from .doc_layers import DocLayers
from .doc_vectors import get_owners
from .gradients import Batch
from .model_nodes import list_components


class ElmoListener(Model[list[Doc], list[Floats2d]]):
    """Mixes the layers that an elmo component earlier in the pipeline has computed.

    It takes them from the component that it is linked to and from no other. In training its
    gradients go into the component's current batch.

    Args:
        upstream: name of the component.
        mix: `scalar_mix.ScalarMix`, this listener's own.

    Attributes:
        doc_layers: those of the component that it is linked to, None if there is none.
        before: those of all elmo components that were before it in a pipeline.
        samples: Docs that shapes are inferred with, which no component has read.
    """

    def __init__(self, upstream: str, mix: Model[list[Floats3d], list[Floats2d]]):
        super().__init__("elmo-listener", forward, init=init, layers=[mix], dims={"nO": None})
        self.upstream = upstream
        self.n_layers = 0
        self.doc_layers: DocLayers | None = None
        self.before: list[DocLayers] = []
        self.samples: list[Doc] = []

    def link(self, doc_layers: DocLayers | None) -> None:
        """Take layers from a component, or from none."""
        if self.doc_layers is not None:
            self.doc_layers.listeners.discard(self)
        self.doc_layers = doc_layers
        if doc_layers is not None:
            doc_layers.listeners.add(self)

    def accepts(self, doc_layers: DocLayers) -> bool:
        """Link the listener to a component before it if it names it, and return whether it does."""
        if doc_layers not in self.before:
            self.before.append(doc_layers)
        if self.upstream == doc_layers.name:
            self.link(doc_layers)
            self.samples.clear()  # spaCy links again when all components are initialized
            return True
        if self.doc_layers is doc_layers:  # the component was renamed
            self.link(None)
        return False

    def _copy(self, seen: dict[int, Any] | None = None) -> ElmoListener:
        # What `Model.copy` calls, also for the parts of a larger model.
        copied = ElmoListener(self.upstream, self.layers[0]._copy(seen))
        if self.has_dim("nO"):
            copied.set_dim("nO", self.get_dim("nO"))
        copied.n_layers, copied.before = self.n_layers, list(self.before)
        copied.link(self.doc_layers)
        return copied

    def __setstate__(self, state: tuple[dict[str, Any] | None, dict[str, Any]]) -> None:
        # For pickle and deepcopy, whose DocLayers have no listeners.
        for attributes in state:
            for name, value in (attributes or {}).items():
                setattr(self, name, value)
        self.link(self.doc_layers)

    def set_dim(self, name: str, value: int, *, force: bool = False) -> None:
        """As thinc's, but the width can change until the mix has weights."""
        super().set_dim(name, value, force=force or not self.layers[0].has_param("w"))

    def set_shape(self, n_layers: int, width: int) -> None:
        """Set the shape of the component's layers, if the mix has no weights yet.

        Other weights may be loaded after that, so the mix gets its own when it sees layers.
        """
        self.n_layers = n_layers
        if not self.layers[0].has_param("w"):
            self.set_dim("nO", width)

    def find(self, doc: Doc, batch: Batch | None) -> Floats3d:
        """The component's layers of a Doc, ``(L + 1, n_tokens, 2P)``.

        Args:
            doc: the Doc.
            batch: the component's batch that it is in, if any.

        Raises:
            ValueError: the component has not read the Doc, or it was retokenized since.
        """
        # Also in a batch, for its check of the tokens: an annotating component may retokenize.
        layers: Any = None if self.doc_layers is None else self.doc_layers.get(doc)
        if batch is not None:
            layers = batch.layers(doc)
        if layers is None and self._may_be_own(doc):
            layers = extensions.get_layers(doc)
        if layers is None and any(doc is sample for sample in self.samples):
            # Shapes are being inferred; the values do not matter.
            layers = self.ops.alloc3f(self.n_layers, len(doc), self.get_dim("nO"))
        if layers is None:
            raise ValueError(self._not_read(doc.vocab))
        if layers.shape[1] != len(doc):
            raise ValueError(
                f"A Doc has {len(doc)} tokens, but the elmo component '{self.upstream}' has "
                f"read {layers.shape[1]}: it was retokenized since. Put the component that "
                f"retokenizes before '{self.upstream}'."
            )
        return self.ops.asarray3f(layers)  # from bytes they are NumPy's

    def _may_be_own(self, doc: Doc) -> bool:
        """Whether the layers stored on a Doc are its component's; of another process's Docs only
        the name is known."""
        owners = get_owners(doc)
        is_owner = not owners or self.doc_layers in owners
        return is_owner and extensions.stored_by(doc) == self.upstream

    def find_batch(self, docs: Sequence[Doc]) -> Batch | None:
        """The component's batch that the Docs belong to; None if it only annotates them.

        Raises:
            ValueError: some of them belong to it, others do not.
        """
        batch = None if self.doc_layers is None else self.doc_layers.batch
        if batch is None or not any(doc in batch for doc in docs):
            return None
        if not all(doc in batch for doc in docs):
            raise ValueError(
                f"A component learns from Docs that are not in the batch that '{self.upstream}' "
                f"was updated with. Let it learn from the Docs of that batch only."
            )
        return batch

    def check(self, layers: Sequence[Floats3d]) -> None:
        """Raise a ValueError if the mix was made for layers of another number or width."""
        mix = self.layers[0]
        if not mix.has_param("w"):
            return
        expected = (len(mix.get_param("w")), mix.get_dim("nO"))
        for found in layers:
            if found.shape[::2] != expected:
                raise ValueError(
                    f"A listener was trained with a biLM of {expected[0]} layers, "
                    f"{expected[1]}-dimensional, but '{self.upstream}' has {found.shape[0]} "
                    f"layers, {found.shape[2]}-dimensional. Use the weights that it was trained "
                    f"with, or train it again."
                )

    def not_linked(self, vocab: Vocab) -> str:
        """The error that there is no component of the name of the upstream.

        Args:
            vocab: of the pipeline that the listener is in.
        """
        return (
            f"A component listens to '{self.upstream}', but there is no elmo component of that "
            f"name before it. {self._components(vocab)} Set 'upstream' in its "
            f"spacy-elmo.ElmoListener.v1 to the name of an elmo component before it, or add one: "
            f'nlp.add_pipe("elmo", name="{self.upstream}", first=True).'
        )

    def _not_read(self, vocab: Vocab) -> str:
        if self.doc_layers is None:
            return self.not_linked(vocab)
        return (
            f"A component listens to '{self.upstream}', which has not read the Doc. "
            f"{self._components(vocab)} '{self.upstream}' must come before the component and must "
            f"not be disabled. If it is among the frozen_components of a training, add it to "
            f"annotating_components too. (A component that was sourced listens to the "
            f"'{self.upstream}' of the pipeline that it was added to last: load the other one "
            f"again. One that applies its model to parts of Docs as Docs of their own, as the "
            f"entity_linker does, can listen through spacy.Tok2VecListener.v1.)"
        )

    def _components(self, vocab: Vocab) -> str:
        """The pipeline; if it is not known, the elmo components before the listener."""
        for doc_layers in self.before:
            nlp = None if doc_layers.nlp is None else doc_layers.nlp()
            if nlp is not None and nlp.vocab is vocab:
                return list_components(nlp)
        names = ", ".join(f"'{doc_layers.name}'" for doc_layers in self.before)
        return f"Elmo components before it: {names or 'none'}."


def init(model: Any, X: Sequence[Doc] | None = None, Y: Any = None) -> None:
    """Note the Docs of this call as samples, which no component has read."""
    if not X:
        return
    if model.has_dim("nO") is None:
        if model.doc_layers is None:
            raise ValueError(model.not_linked(X[0].vocab))
        raise ValueError(
            f"A component listens to '{model.upstream}', whose weights cannot be found. Set "
            f"'weights' in [components.{model.upstream}.model] to weights that are there."
        )
    model.samples = list(X)


def forward(
    model: Any, docs: Sequence[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    mix: Model[list[Floats3d], list[Floats2d]] = model.layers[0]
    batch: Batch | None = model.find_batch(docs) if is_train else None
    layers = [model.find(doc, batch) for doc in docs]
    model.check(layers)
    if is_train and batch is None and model.doc_layers is not None:
        model.doc_layers.turn_on_cache()
    Y, backprop_mix = mix(layers, is_train)

    def backprop(dY: list[Floats2d]) -> list[Doc]:
        d_layers = backprop_mix(dY)
        if batch is not None:
            batch.add_d_layers(docs, d_layers, mix)
        return []

    return Y, backprop
