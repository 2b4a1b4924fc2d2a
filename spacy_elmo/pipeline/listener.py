"""A layer in another component's model: its own mix of the layers of an elmo component.

What a listener, ours or one of spaCy's, has learned from is an attribute of its node, which thinc
saves with the model. It is set where the listener is linked or trained, never by a prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any
from uuid import uuid4

import srsly
from spacy.tokens import Doc
from thinc.api import Model, to_numpy
from thinc.model import serialize_attr
from thinc.types import Floats2d

from ..bilm.fingerprint import fingerprint
from .batch import closed_batch
from .readings import Reading, last_reading, note_reading, token_ends
from .scalar_mix import MixModel, reset

ATTRIBUTE = "elmo_learned_from"


class ElmoListener(Model[list[Doc], list[Floats2d]]):
    """Mixes the layers that an elmo component earlier in the pipeline has read.

    It finds them by the Doc and the component's key, and refers to no object of the component. Keys
    of components that it was linked to stay: a component that was sourced is one object in several
    pipelines, and so is its listener.

    Args:
        upstream: name of the component.
        mix: `scalar_mix.ScalarMix`, this listener's own.

    Attributes:
        keys: of the elmo components that it was linked to.
        component: name of the component that it is in.
        source: the biLM of the elmo component that it was linked to last; copies have its facts.
        depth: number L + 1 of the layers.
    """

    def __init__(self, upstream: str, mix: MixModel):
        super().__init__("elmo-listener", forward, init=init, layers=[mix], dims={"nO": None})
        self.upstream, self.component, self.depth = upstream, "", 0
        self.keys: set[str] = set()
        self.source: LearnedFrom | None = None
        self._sample_key, self._infers_shapes = uuid4().hex, False

    def link(self, key: str, component: str, source: LearnedFrom) -> None:
        """Take the layers of Docs that the elmo component with this key has read."""
        self.keys.add(key)
        self.component, self.source = component, source
        self._infers_shapes = False  # spaCy links again when all components are initialized

    def set_shape(self, depth: int, width: int) -> None:
        """Set the shape of the layers, unless the mix has weights already."""
        self.depth = depth
        if not self.layers[0].has_param("w"):
            self.set_dim("nO", width)

    def set_dim(self, name: str, value: int, *, force: bool = False) -> None:
        """Set a dimension as thinc does, but the width can change until the mix has weights."""
        super().set_dim(name, value, force=force or not self.layers[0].has_param("w"))

    def read(self, doc: Doc, is_train: bool) -> Reading:
        """What the component has read of a Doc.

        Raises:
            ValueError: it has not read the Doc, or other tokens.
        """
        reading = last_reading(doc, self.keys)
        if reading is None and self._infers_shapes and not is_train:
            reading = last_reading(doc, {self._sample_key})
        is_gone = reading is not None and reading.bilm is not None and reading.bilm() is None
        if reading is None or is_gone or reading.layers is None or not reading.fits(doc):
            who = f"The component '{self.component}'" if self.component else "A component"
            raise ValueError(
                f"{who} listens to '{self.upstream}', which has not read the Doc, or only before "
                f"it was retokenized. Check that an elmo component of that name is before it, "
                f"enabled and, if frozen in a training, one of the annotating_components; "
                f"nlp.rehearse does not run it: run it on the Docs first."
            )
        return reading

    def _copy(self, seen: dict[int, Any] | None = None) -> ElmoListener:
        # What `Model.copy` calls, also for the parts of a larger model.
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
    readings = [model.read(doc, is_train) for doc in docs]
    bilms = {reading.bilm for reading in readings} - {None}
    sources = [LearnedFrom(bilm()) for bilm in bilms]
    for source in sources:
        check_source(model, source, model.component, model.upstream)
    batches = {reading.open_batch() for reading in readings} if is_train else set()
    if len(batches) > 1:
        raise ValueError(
            f"The component '{model.component}' learns from Docs that are not in the batch that "
            f"'{model.upstream}' was updated with. Let it learn from the Docs of one batch only."
        )
    batch = next(iter(batches), None)
    if batch is not None:
        learn_from(model, sources[0])
        indices = [reading.batch[1] for reading in readings]
        layers = [batch.layers[i] for i in indices]
    else:
        if is_train and any(reading.has_lost_batch() for reading in readings):
            raise closed_batch(f"The component '{model.component}'", model.upstream)
        layers = [reading.layers for reading in readings]
        for source in sources if is_train else ():
            source.bilm.cache.begin()  # the component is frozen in this training: it only annotates
    Y, backprop_mix = mix([model.ops.asarray3f(each) for each in layers], is_train)

    def backprop(dY: list[Floats2d]) -> list[Doc]:
        d_layers = backprop_mix(dY, batch is not None and batch.trains_bilm)
        if batch is not None:
            batch.add(indices, d_layers)
        return []

    return Y, backprop


def init(model: Any, X: Sequence[Doc] | None = None, Y: Any = None) -> None:
    """Begin to learn. The Docs are samples by which shapes are inferred: their layers are zeros."""
    learn_from(model, model.source)
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
        note_reading(doc, model._sample_key, Reading(token_ends(doc), layers=zeros))


@dataclass(eq=False)
class LearnedFrom:
    """A biLM, and the mix of it in ``doc.tensor``, as they are now.

    It refers to both, so that a listener which learns together with them needs no notice of their
    steps. Copied, pickled or saved it is its `facts`.

    Args:
        bilm: a `bilm_layer.LazyBiLM`.
        mix: the component's, for a listener of spaCy's; None for one with a mix of its own.
    """

    bilm: Any
    mix: Model | None = None

    def facts(self) -> dict[str, str]:
        """Name and hash of the biLM, hash of the mix; no hash before the weights are loaded."""
        bilm = self.bilm
        if not bilm.is_loaded:
            return {"name": "", "bilm": "", "mix": ""}
        name = str(bilm.card.meta.get("name") or bilm.settings.weights)
        mix = "" if self.mix is None else _hash_mix(self.mix)
        return {"name": name, "bilm": fingerprint(bilm.model), "mix": mix}

    def __reduce__(self) -> Any:
        return dict, (self.facts(),)


@serialize_attr.register
def _serialize(_: LearnedFrom, value: LearnedFrom, name: str, model: Model) -> bytes:
    return srsly.msgpack_dumps(value.facts())


def _hash_mix(mix: Any) -> str:
    settings = mix.attrs["settings"]
    found = blake2b(f"{settings.layers} {settings.layer_norm}".encode(), digest_size=16)
    for name in ("w", "gamma"):
        if mix.has_param(name):
            found.update(to_numpy(mix.get_param(name)).astype("float32").tobytes())
    return found.hexdigest()


def learn_from(listener: Model, source: Any, anew: bool = True) -> None:
    """Note what a listener learns from; not ``anew``, only if it has not learned from any biLM."""
    if anew or not _facts(listener.attrs.get(ATTRIBUTE)).get("bilm"):
        listener.attrs[ATTRIBUTE] = source


def check_source(listener: Model, source: LearnedFrom, component: str, upstream: str) -> None:
    """Raise a ValueError if a listener has learned from another biLM, or another mix.

    Args:
        listener: of either kind.
        source: what it would read.
        component, upstream: names of its component and of the elmo component.
    """
    known = listener.attrs.get(ATTRIBUTE)
    if isinstance(known, LearnedFrom) and known.bilm is source.bilm and known.mix is source.mix:
        return
    learned, now = _facts(known), source.facts()
    names = ("bilm", "mix") if source.mix is not None else ("bilm",)
    if learned.get("bilm") and now["bilm"] and any(learned.get(n) != now[n] for n in names):
        raise ValueError(
            f"The component '{component}' has learned from {_label(learned)}, but '{upstream}' has "
            f"{_label(now)}. Source '{upstream}' from the pipeline of '{component}' too, give "
            f"'{component}' a copy there by replace_listeners, or train it again."
        )


def _facts(known: Any) -> dict[str, Any]:
    known = known.facts() if isinstance(known, LearnedFrom) else known
    return known if isinstance(known, dict) else {}


def _label(facts: dict[str, Any]) -> str:
    mix = f", mix {str(facts['mix'])[:8]}" if facts.get("mix") else ""
    return f"the biLM '{facts.get('name')}' ({str(facts.get('bilm'))[:8]}{mix})"
