"""What a listener has learned from, so that it never reads the vectors of another biLM unnoticed.

It is an attribute of the listener's node, which thinc saves with the model.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import srsly
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2VecListener
from thinc.api import Model, to_numpy
from thinc.model import deserialize_attr, serialize_attr

from ..bilm.fingerprint import fingerprint
from .bilm_shim import BiLMShim
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


@deserialize_attr.register
def _deserialize(_: LearnedFrom, value: bytes, name: str, model: Model) -> Any:
    return srsly.msgpack_loads(value)


def _mix_fingerprint(mix: Any) -> str:
    settings = mix.attrs["settings"]
    found = blake2b(f"{settings.layers} {settings.layer_norm}".encode(), digest_size=16)
    for name in ("w", "gamma"):
        found.update(to_numpy(mix.get_param(name)).astype("float32").tobytes())
    return found.hexdigest()


def forget(listener: Model) -> None:
    """Let the listener take for its own what it reads next; it learns from the beginning."""
    listener.attrs.pop(ATTRIBUTE, None)


def is_learned_from(listener: Model, shim: BiLMShim, mix: Model | None = None) -> bool:
    """Whether a listener may read the vectors of a biLM.

    It may if it has learned from the same weights. One that does not know, because it is new or
    was saved without a fingerprint, takes these for its own.

    Args:
        listener: of either kind.
        shim, mix: see `LearnedFrom`.
    """
    known = listener.attrs.get(ATTRIBUTE)
    if isinstance(known, LearnedFrom):
        if known.bilm is shim.bilm and known.mix is mix:
            return True
        known = known.facts()
    now = LearnedFrom(shim, mix)
    if known is not None:
        own = now.facts()
        if not isinstance(known, dict) or any(known.get(n) != own[n] for n in ("bilm", "mix")):
            return False
    listener.attrs[ATTRIBUTE] = now  # as it is now and as it learns with the listener
    return True


def take_along(elmo: Any) -> None:
    """Let the listeners of an elmo component that have learned from its weights go on with them.

    It is called before a step changes the weights, once after listeners were linked or loaded.
    """
    if not elmo.doc_layers.are_known:
        for listener in (*elmo.doc_layers.listeners, *elmo.tok2vec_listeners):
            is_learned_from(listener, elmo.shim, _mix(elmo, listener))
        elmo.doc_layers.are_known = True


def begin_to_learn(elmo: Any, nlp: Language) -> None:
    """Note the biLM of an elmo component that is initialized for spaCy's listeners beside it.

    Raises:
        ValueError: a component that is not initialized with it, such as a frozen one, has learned
            from another biLM.
    """
    for component, listeners in elmo.listener_map.items():
        for listener in listeners:
            if component in nlp.pipe_names and isinstance(listener, Tok2VecListener):
                forget(listener)
            if component not in nlp.pipe_names or isinstance(listener, Tok2VecListener):
                check_listener(elmo, component, listener)


def check_tensor_listeners(elmo: Any) -> None:
    """Raise a ValueError if an enabled listener of spaCy's has learned from another biLM or mix
    than an elmo component's."""
    nlp = elmo.tensor_conflicts.nlp
    disabled = () if nlp is None else nlp.disabled
    for component, listeners in elmo.listener_map.items():
        for listener in listeners:
            if isinstance(listener, Tok2VecListener) and component not in disabled:
                check_listener(elmo, component, listener)


def check_listener(elmo: Any, component: str, listener: Model) -> None:
    """Raise a ValueError if a listener has learned from another biLM or mix than a component's.

    Args:
        elmo: the elmo component; nothing is wrong as long as its weights are not loaded.
        component: name of the listener's.
        listener: of either kind.
    """
    mix = _mix(elmo, listener)
    if elmo.shim.is_loaded and not is_learned_from(listener, elmo.shim, mix):
        raise ValueError(other_bilm(listener, component, elmo.name, LearnedFrom(elmo.shim, mix)))


def _mix(elmo: Any, listener: Model) -> Model | None:
    """The component's mix, if the listener reads it."""
    if not isinstance(listener, Tok2VecListener):
        return None
    mix, config = elmo.model.get_ref("mix"), elmo.shim.config
    set_up(mix, config.n_layers + 1, config.width)
    return mix


def other_bilm(listener: Model, component: str, upstream: str, now: LearnedFrom) -> str:
    """The error that a listener has learned from another biLM.

    Args:
        listener: the listener.
        component: name of the component that it is in, empty if that is not known.
        upstream: name of the elmo component.
        now: what that has.
    """
    known = listener.attrs[ATTRIBUTE]
    learned = _label(known.facts() if isinstance(known, LearnedFrom) else known)
    who = f"The component '{component}'" if component else "A component that listens to it"
    return (
        f"{who} has learned from {learned}, but '{upstream}' has {_label(now.facts())}. Source "
        f"'{upstream}' from the pipeline of the component too; or give the component a copy before "
        f"it is sourced: source.replace_listeners('{upstream}', '{component or '…'}', "
        f"['model.tok2vec']); or train it again, from nlp.initialize() on."
    )


def _label(facts: Any) -> str:
    facts = facts if isinstance(facts, dict) else {}
    mix = f", mix {str(facts['mix'])[:8]}" if facts.get("mix") else ""
    return f"the biLM '{facts.get('name')}' ({str(facts.get('bilm'))[:8]}{mix})"
