"""A layer in another component's model: its own mix of the biLM's layers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from . import errors, extensions
from .doc_layers import DocLayers
from .learned_from import check_stored, forget, mismatch
from .pipeline_parts import find_component
from .scalar_mix import MixModel, begin_anew
from .stored_vectors import get_owners


class ElmoListener(Model[list[Doc], list[Floats2d]]):
    """Mixes the layers that an elmo component earlier in the pipeline has computed.

    A component that was sourced is one object in several pipelines, and so is its listener: it is
    linked to an elmo component in each, and takes a Doc's layers from the one that has read the
    Doc. In training its gradients go into the current batch of that.

    Args:
        upstream: name of the component.
        mix: `scalar_mix.ScalarMix`, this listener's own.

    Attributes:
        links: those of the components of that name that it is linked to.
        before: those of all elmo components that were before it in a pipeline.
        samples: Docs that shapes are inferred with, which no component has read.
        depth: number L + 1 of the component's layers.
    """

    def __init__(self, upstream: str, mix: MixModel):
        super().__init__("elmo-listener", forward, init=init, layers=[mix], dims={"nO": None})
        self.upstream = upstream
        self.depth = 0
        self.links: list[DocLayers] = []
        self.before: list[DocLayers] = []
        self.samples: list[Doc] = []

    def follow(self, doc_layers: DocLayers) -> None:
        """Take note of an elmo component before the listener, and link to it if it is named."""
        self.before = _with(self.before, doc_layers)
        if self.upstream == doc_layers.name:
            self.link(doc_layers)
            self.samples.clear()  # spaCy links again when all components are initialized
        elif doc_layers in self.links:
            nlp = doc_layers.nlp()
            named = None if nlp is None else dict(nlp.components).get(self.upstream)
            if getattr(named, "doc_layers", None) is doc_layers:
                warnings.warn(
                    f"A component listens to '{self.upstream}', which was sourced as "
                    f"'{doc_layers.name}': when this pipeline is saved and loaded, it will not "
                    f"find it. Source it as '{self.upstream}'.",
                    UserWarning,
                    stacklevel=5,
                )
            else:
                self.unlink(doc_layers)  # it was renamed

    def link(self, doc_layers: DocLayers) -> None:
        """Take the layers of Docs that a component has read."""
        self.links = _with(self.links, doc_layers)
        doc_layers.listeners.add(self)
        doc_layers.are_known = False

    def unlink(self, doc_layers: DocLayers) -> None:
        """Take no more layers from a component."""
        self.links = [each for each in self.links if each is not doc_layers]
        doc_layers.listeners.discard(self)

    def _copy(self, seen: dict[int, Any] | None = None) -> ElmoListener:
        # What `Model.copy` calls, also for the parts of a larger model.
        copied = ElmoListener(self.upstream, self.layers[0]._copy(seen))
        if self.has_dim("nO"):
            copied.set_dim("nO", self.get_dim("nO"))
        copied.depth, copied.before = self.depth, list(self.before)
        copied.attrs.update(self.attrs)
        for doc_layers in self.links:
            copied.link(doc_layers)
        return copied

    def __setstate__(self, state: tuple[dict[str, Any] | None, dict[str, Any]]) -> None:
        # For pickle and deepcopy, whose DocLayers have no listeners.
        for attributes in state:
            for name, value in (attributes or {}).items():
                setattr(self, name, value)
        for doc_layers in self.links:
            doc_layers.listeners.add(self)

    def set_dim(self, name: str, value: int, *, force: bool = False) -> None:
        """Set a dimension as thinc does, but the width can change until the mix has weights."""
        super().set_dim(name, value, force=force or not self.layers[0].has_param("w"))

    def set_shape(self, depth: int, width: int) -> None:
        """Set the shape of the component's layers, if the mix has no weights yet.

        Other weights may be loaded after that, so the mix gets its own when it sees layers.
        """
        self.depth = depth
        if not self.layers[0].has_param("w"):
            self.set_dim("nO", width)

    def source(self, doc: Doc) -> DocLayers | None:
        """The component that has read a Doc, the last one if several have; None if none has."""
        owners = [owner for owner in get_owners(doc) if owner in self.links]
        return next((each for each in (*owners, *reversed(self.links)) if doc in each), None)

    def find(self, doc: Doc, source: DocLayers | None, is_train: bool = False) -> Floats3d:
        """The layers of a Doc, ``(L + 1, n_tokens, 2P)``.

        Args:
            doc: the Doc.
            source: the component that has read it, None if none has.
            is_train: the component learns from the Doc.

        Raises:
            ValueError: no component has read the Doc, or it was retokenized since.
        """
        # Also in a batch, for its check of the tokens: an annotating component may retokenize.
        layers: Any = None if source is None else source.get(doc)
        if is_train and source is not None and doc in source.batch:
            layers = source.batch.layers(doc)
        if layers is None and self._may_be_own(doc):
            check_stored(self, extensions.stored_bilm(doc))
            layers = extensions.get_layers(doc)
        if layers is None and any(doc is sample for sample in self.samples):
            # Shapes are being inferred; the values do not matter.
            layers = self.ops.alloc3f(self.depth, len(doc), self.get_dim("nO"))
        if layers is None:
            raise ValueError(errors.not_read(self, doc.vocab, is_train))
        return self.ops.asarray3f(layers)  # from bytes they are NumPy's

    def _may_be_own(self, doc: Doc) -> bool:
        """Return whether the layers stored on a Doc are its component's; of another process's Docs
        only the name is known."""
        owners = get_owners(doc)
        is_owner = not owners or any(owner in self.links for owner in owners)
        return is_owner and extensions.stored_by(doc) == self.upstream

    def find_updated(self, docs: Sequence[Doc]) -> DocLayers | None:
        """The component that was updated with the Docs; None if it only annotates them.

        Raises:
            ValueError: it was updated with some of them, but not with others.
        """
        for doc_layers in reversed(self.links):
            are_in_batch = {doc in doc_layers.batch for doc in docs}
            if are_in_batch == {True}:
                return doc_layers
            if True in are_in_batch:
                raise ValueError(
                    f"A component learns from Docs that are not in the batch that "
                    f"'{self.upstream}' was updated with. Let it learn from the Docs of that batch "
                    f"only."
                )
        return None

    def check(self, source: DocLayers) -> None:
        """Raise a ValueError if the listener has learned from another biLM than a component's."""
        shim, nlp = source.shim(), source.nlp()
        differ = mismatch(self, shim) if shim is not None and shim.is_loaded else None
        if differ is not None:
            _, component = find_component(self, [] if nlp is None else [nlp])
            raise ValueError(errors.other_bilm(component, self.upstream, *differ))


def _with(known: list[DocLayers], new: DocLayers) -> list[DocLayers]:
    """The known ones whose component still exists, and a new one, which comes last."""
    return [each for each in known if each is not new and each.shim() is not None] + [new]


def forward(
    model: Any, docs: Sequence[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    mix: MixModel = model.layers[0]
    updated: DocLayers | None = model.find_updated(docs) if is_train else None
    sources = [updated or model.source(doc) for doc in docs]
    layers = [model.find(doc, source, is_train) for doc, source in zip(docs, sources, strict=True)]
    for source in dict.fromkeys(each for each in sources if each is not None):
        model.check(source)
        if is_train and updated is None and (shim := source.shim()) is not None:
            shim.cache.enable()  # a component frozen in the training does not know
    batch = None if updated is None else updated.batch
    Y, backprop_mix = mix(layers, is_train)

    def backprop(dY: list[Floats2d]) -> list[Doc]:
        d_layers = backprop_mix(dY, batch is not None and batch.trains_bilm)
        if batch is not None:
            batch.add_d_layers(docs, d_layers, mix)
        return []

    return Y, backprop


def init(model: Any, X: Sequence[Doc] | None = None, Y: Any = None) -> None:
    """Begin to learn: note the Docs of this call as samples, which no component has read, and the
    biLM."""
    forget(model)
    begin_anew(model.layers[0])
    for source in model.links[-1:]:
        if (shim := source.shim()) is not None and shim.is_loaded:
            model.set_shape(shim.config.depth, shim.config.width)
    if not X:
        return
    vocab = X[0].vocab
    if model.has_dim("nO") is None:
        if not model.links:
            raise ValueError(errors.not_linked(model, vocab))
        raise ValueError(
            f"A component listens to '{model.upstream}', whose weights cannot be found. Set "
            f"'weights' in [components.{model.upstream}.model] to weights that are there."
        )
    model.samples = list(X)
    own = [each for each in model.links if (nlp := each.nlp()) is not None and nlp.vocab is vocab]
    for source in (own or model.links)[-1:]:
        model.check(source)
