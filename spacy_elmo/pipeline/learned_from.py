"""Keeps listeners from reading the vectors of another biLM than they have learned from.

What a listener has learned from is an attribute of its node, which thinc saves with the model.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import srsly
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2VecListener
from thinc.api import Model, to_numpy
from thinc.model import serialize_attr

from ..bilm.fingerprint import fingerprint
from . import errors
from .bilm_layer import BiLMShim
from .scalar_mix import set_up

ATTRIBUTE = "elmo_learned_from"


class LearnedFrom:
    """A biLM and, for spaCy's listeners, the mix in ``doc.tensor``, as they are now.

    What they are is asked for when they are compared with others or saved. So a listener that
    learns together with a biLM needs no notice of its steps. Copies and pickles are `facts`.

    Args:
        shim: of the biLM, which is loaded.
        mix: the component's; None for an `ElmoListener`, which has its own.
    """

    def __init__(self, shim: BiLMShim, mix: Model | None = None):
        self.bilm, self.mix = shim.bilm, mix
        self.name = shim.card.meta.get("name") or str(shim.settings.weights)

    def facts(self) -> dict[str, str]:
        """Name and fingerprint of the biLM, and a fingerprint of the mix, empty without one."""
        mix = "" if self.mix is None else _mix_fingerprint(self.mix)
        return {"name": self.name, "bilm": fingerprint(self.bilm), "mix": mix}

    def __reduce__(self) -> Any:
        return dict, (self.facts(),)


@serialize_attr.register
def _serialize(_: LearnedFrom, value: LearnedFrom, name: str, model: Model) -> bytes:
    return srsly.msgpack_dumps(value.facts())


def _mix_fingerprint(mix: Any) -> str:
    settings = mix.attrs["settings"]
    found = blake2b(f"{settings.layers} {settings.layer_norm}".encode(), digest_size=16)
    for name in ("w", "gamma"):
        found.update(to_numpy(mix.get_param(name)).astype("float32").tobytes())
    return found.hexdigest()


def forget(listener: Model) -> None:
    """Let the listener take for its own what it reads next; it learns from the beginning."""
    listener.attrs.pop(ATTRIBUTE, None)


def mismatch(
    listener: Model, shim: BiLMShim, mix: Model | None = None
) -> tuple[Any, dict[str, str]] | None:
    """Compare what a listener has learned from with what it would read.

    One that does not know, because it is new or was saved without a fingerprint, takes what it
    reads for its own.

    Args:
        listener: of either kind.
        shim, mix: see `LearnedFrom`.

    Returns:
        The `facts` of both if they differ, else None.
    """
    known = listener.attrs.get(ATTRIBUTE)
    if isinstance(known, LearnedFrom):
        if known.bilm is shim.bilm and known.mix is mix:
            return None
        known = known.facts()
    now = LearnedFrom(shim, mix)
    if known is not None:
        own = now.facts()
        if not isinstance(known, dict) or any(known.get(n) != own[n] for n in ("bilm", "mix")):
            return known, own
    listener.attrs[ATTRIBUTE] = now  # as it is now and as it learns with the listener
    return None


def check_stored(listener: Model, bilm: str) -> None:
    """Raise a ValueError if stored layers are of another biLM than a listener has learned from.

    Args:
        listener: an `ElmoListener`.
        bilm: fingerprint of the layers', empty if it is not known.
    """
    known = listener.attrs.get(ATTRIBUTE)
    if isinstance(known, LearnedFrom):
        known = known.facts()
    if bilm and isinstance(known, dict) and known.get("bilm", bilm) != bilm:
        raise ValueError(
            f"A component has learned from the biLM '{known.get('name')}', but the layers that are "
            f"stored on the Doc are those of another. Run the pipeline's elmo component on the "
            f"Doc, or remove them: doc._.elmo_layers = None."
        )


def check_listener(elmo: Any, component: str, listener: Model) -> None:
    """Raise a ValueError if a listener does not fit the vectors of an elmo component.

    Args:
        elmo: the elmo component; any biLM fits as long as its weights are not loaded.
        component: name of the listener's.
        listener: of either kind.
    """
    width = elmo.shim.config.width
    if isinstance(listener, Tok2VecListener) and listener.get_dim("nO") != width:
        advice = f"Set it to {width}."
        if listener.upstream_name == "*":
            advice += (
                ' Or, if it should not listen to this component: its upstream is "*", any that '
                "makes vectors; set that to the name of the one."
            )
        raise ValueError(
            f"The listener in the component '{component}' has the setting width = "
            f"{listener.get_dim('nO')}, but the vectors of '{elmo.name}' are {width}-dimensional. "
            f"{advice}"
        )
    if elmo.shim.is_loaded:
        differ = mismatch(listener, elmo.shim, _own_mix(elmo, listener))
        if differ is not None:
            raise ValueError(errors.other_bilm(component, elmo.name, *differ))


def _own_mix(elmo: Any, listener: Model) -> Model | None:
    """The component's mix, if the listener reads it."""
    if not isinstance(listener, Tok2VecListener):
        return None
    mix, config = elmo.model.get_ref("mix"), elmo.shim.config
    set_up(mix, config.depth, config.width)
    return mix


def check_tensor_listeners(elmo: Any) -> None:
    """Check the enabled listeners of spaCy's, see `check_listener`; ours check what they read."""
    nlp = elmo.doc_layers.nlp()
    disabled = () if nlp is None else nlp.disabled
    for component, listeners in elmo.listener_map.items():
        for listener in listeners:
            if isinstance(listener, Tok2VecListener) and component not in disabled:
                check_listener(elmo, component, listener)


def begin_to_learn(elmo: Any, nlp: Language) -> None:
    """Let listeners of spaCy's that are initialized with an elmo component begin anew.

    Raises:
        ValueError: one that is not, such as that of a frozen component, has learned from another
            biLM.
    """
    for component, listeners in elmo.listener_map.items():
        for listener in listeners:
            is_initialized = component in nlp.pipe_names
            is_spacys = isinstance(listener, Tok2VecListener)
            if is_initialized and is_spacys:
                forget(listener)
            if is_spacys or not is_initialized:
                check_listener(elmo, component, listener)


def take_along(elmo: Any) -> None:
    """Let the listeners of an elmo component that have learned from its weights go on with them.

    It is called before a step changes the weights, once after listeners were linked or loaded.
    """
    if not elmo.doc_layers.are_known:
        for listener in (*elmo.doc_layers.listeners, *elmo.tok2vec_listeners):
            mismatch(listener, elmo.shim, _own_mix(elmo, listener))
        elmo.doc_layers.are_known = True
