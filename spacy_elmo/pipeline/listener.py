"""``spacy-elmo.ElmoListener.v1``: a layer in another component's model, with its own mix of the
layers that an elmo component has computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from .batch import closed_batch
from .doc_output import DocOutput, last_output, remember, token_ends
from .scalar_mix import MixModel, reset
from .source_stamp import SourceStamp, check_source, stamp_source


class ElmoListener(Model[list[Doc], list[Floats2d]]):
    """Mixes the layers that an elmo component earlier in the pipeline has computed.

    It finds the layers by the Doc and the component's key, and holds no reference to the component.
    It keeps the keys of all components that it was linked to: a sourced component, and a sourced
    listener, can be in several pipelines.

    Args:
        upstream: name of the elmo component.
        mix: the listener's own `scalar_mix.ScalarMix`.

    Attributes:
        keys: keys of the elmo components that it was linked to.
        component: name of the component whose model it is in.
        source: the biLM of the elmo component that it was linked to last; a dict in copies.
        depth: the number of layers, L + 1.
    """

    def __init__(self, upstream: str, mix: MixModel):
        super().__init__("elmo-listener", forward, init=init, layers=[mix], dims={"nO": None})
        self.upstream, self.component, self.depth = upstream, "", 0
        self.keys: set[str] = set()
        self.source: SourceStamp | None = None
        self._sample_key, self._infers_shapes = uuid4().hex, False

    def link(self, key: str, component: str, source: SourceStamp) -> None:
        """Let this listener read the outputs of an elmo component. The config of the weights gives
        the shape of the layers.

        Args:
            key: the elmo component's key.
            component: name of the component whose model this listener is in.
            source: the elmo component's biLM.
        """
        self.keys.add(key)
        self.component, self.source = component, source
        self._infers_shapes = False  # spaCy links again when all components are initialized
        with suppress(ValueError):  # weights that cannot be read are reported when they are needed
            self.depth = source.bilm.config.depth
            if not self.layers[0].has_param("w"):
                self.set_dim("nO", source.bilm.config.width)

    def set_dim(self, name: str, value: int, *, force: bool = False) -> None:
        """Set a dimension as thinc does; the width can change until the mix has weights."""
        super().set_dim(name, value, force=force or not self.layers[0].has_param("w"))

    def find_output(self, doc: Doc, is_train: bool) -> DocOutput:
        """Find the elmo component's output for a Doc.

        Raises:
            ValueError: the component has not read the Doc, or the Doc was retokenized since.
        """
        output = last_output(doc, self.keys)
        if output is None and self._infers_shapes and not is_train:
            output = last_output(doc, {self._sample_key})
        is_gone = output is not None and output.bilm is not None and output.bilm() is None
        if output is None or is_gone or output.layers is None or not output.fits(doc):
            who = f"The component '{self.component}'" if self.component else "A component"
            raise ValueError(
                f"{who} listens to '{self.upstream}', which has not read the Doc, or only before "
                f"tokens were merged or split. Put an enabled elmo component of that name before "
                f"it; if that is frozen in a training, add it to annotating_components; before "
                f"nlp.rehearse, run it on the Docs."
            )
        return output

    def _copy(self, seen: dict[int, Any] | None = None) -> ElmoListener:
        # `Model.copy` calls this for each node, and would make a plain Model of it.
        copied = ElmoListener(self.upstream, self.layers[0]._copy(seen))
        if self.has_dim("nO"):
            copied.set_dim("nO", self.get_dim("nO"))
        copied.component, copied.source = self.component, self.source
        copied.depth, copied.keys = self.depth, {*self.keys}
        copied.attrs.update(self.attrs)
        return copied


def forward(
    model: Any, docs: Sequence[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    mix: MixModel = model.layers[0]
    outputs = [model.find_output(doc, is_train) for doc in docs]
    sources = [SourceStamp(bilm()) for bilm in {output.bilm for output in outputs} - {None}]
    for source in sources:
        check_source(model, source, model.component, model.upstream)
    batches = {output.open_batch() for output in outputs} if is_train else set()
    if len(batches) > 1:
        raise ValueError(
            f"The component '{model.component}' learns from Docs that are not in the batch that "
            f"'{model.upstream}' was updated with. Let it learn from the Docs of one batch only."
        )
    batch = next(iter(batches), None)
    if batch is not None:
        stamp_source(model, sources[0])
        indices = [output.batch[1] for output in outputs]
        layers = [batch.layers[i] for i in indices]
    else:
        if is_train and any(out.batch and not out.bilm().settings.frozen for out in outputs):
            raise closed_batch(f"The component '{model.component}'", model.upstream)
        layers = [output.layers for output in outputs]
        for source in sources if is_train else ():
            source.bilm.cache.begin()  # the elmo component is frozen here, and annotates
    Y, backprop_mix = mix([model.ops.asarray3f(x) for x in layers], is_train)

    def backprop(dY: list[Floats2d]) -> list[Doc]:
        d_layers = backprop_mix(dY, batch is not None and batch.trains_bilm)
        if batch is not None:
            batch.add(indices, d_layers)
        return []

    return Y, backprop


def init(model: Any, X: Sequence[Doc] | None = None, Y: Any = None) -> None:
    """Forget what was learned. Sample Docs get layers of zeros, from which thinc infers shapes."""
    stamp_source(model, model.source)
    reset(model.layers[0])
    if X and not model.has_dim("nO"):
        raise ValueError(
            f"A component listens to '{model.upstream}', but no elmo component of that name whose "
            f"weights can be found stands before it in the pipeline. Add one, or set 'upstream' of "
            f"the spacy-elmo.ElmoListener.v1 or 'weights' in "
            f"[components.{model.upstream}.model]."
        )
    model._infers_shapes = True
    for doc in X or ():
        zeros = model.ops.alloc3f(model.depth, len(doc), model.get_dim("nO"))
        remember(doc, model._sample_key, DocOutput(token_ends(doc), layers=zeros))
