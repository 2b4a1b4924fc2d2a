"""What a listener learns from, noted on its node: a component that learned from one biLM must not
read another biLM's vectors.

The note is an attribute of the listener, ours or spaCy's, so thinc saves it with the model. Linking
and training write it, predictions compare it.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import srsly
from thinc.api import Model, to_numpy
from thinc.model import serialize_attr

from ..bilm.fingerprint import fingerprint

ATTRIBUTE = "elmo_learned_from"


@dataclass(eq=False)
class SourceStamp:
    """A biLM, and the mix that makes ``doc.tensor`` from its layers.

    In memory the stamp refers to both, so it stays valid while they train together with the
    listener. Copies, pickles and files have the hashes of the moment when they are made.

    Args:
        bilm: a `bilm_layer.LazyBiLM`.
        mix: the component's mix, for one of spaCy's listeners; None for a listener with its own.
    """

    bilm: Any
    mix: Model | None = None

    def hashes(self) -> dict[str, str]:
        """The name and hash of the biLM, and the hash of the mix; empty before the biLM is
        loaded."""
        bilm = self.bilm
        if not bilm.is_loaded:
            return {"name": "", "bilm": "", "mix": ""}
        name = str(bilm.card.meta.get("name") or bilm.settings.weights)
        mix = "" if self.mix is None else _hash_mix(self.mix)
        return {"name": name, "bilm": fingerprint(bilm.model), "mix": mix}

    def __reduce__(self) -> Any:
        return dict, (self.hashes(),)


@serialize_attr.register
def _serialize(_: SourceStamp, value: SourceStamp, name: str, model: Model) -> bytes:
    return srsly.msgpack_dumps(value.hashes())


def _hash_mix(mix: Any) -> str:
    settings = mix.attrs["settings"]
    digest = blake2b(f"{settings.layers} {settings.layer_norm}".encode(), digest_size=16)
    for name in ("w", "gamma"):
        if mix.has_param(name):
            digest.update(to_numpy(mix.get_param(name)).astype("float32").tobytes())
    return digest.hexdigest()


def stamp_source(listener: Model, source: SourceStamp | None, overwrite: bool = True) -> None:
    """Note what a listener learns from.

    Args:
        listener: an `ElmoListener`, or one of spaCy's.
        source: the biLM, and the mix for one of spaCy's listeners.
        overwrite: forget the biLM from which the listener has learned before.
    """
    if overwrite or not _hashes(listener.attrs.get(ATTRIBUTE)).get("bilm"):
        listener.attrs[ATTRIBUTE] = source


def check_source(listener: Model, source: SourceStamp, component: str, upstream: str) -> None:
    """Raise a ValueError if a listener has learned from another biLM or another mix.

    Args:
        listener: an `ElmoListener`, or one of spaCy's.
        source: what the listener would read.
        component: name of the listener's component.
        upstream: name of the elmo component.
    """
    known = listener.attrs.get(ATTRIBUTE)
    if isinstance(known, SourceStamp) and known.bilm is source.bilm and known.mix is source.mix:
        return
    learned, now = _hashes(known), source.hashes()
    names = ("bilm", "mix") if source.mix is not None else ("bilm",)
    if learned.get("bilm") and now["bilm"] and any(learned.get(n) != now[n] for n in names):
        raise ValueError(
            f"The component '{component}' has learned from {_label(learned)}, but '{upstream}' has "
            f"{_label(now)}. Source '{upstream}' from the pipeline of '{component}' too, give "
            f"'{component}' a copy there by replace_listeners, or train it again."
        )


def _hashes(known: Any) -> dict[str, Any]:
    """The hashes of an attribute's value, which is a dict in a pipeline that was loaded."""
    known = known.hashes() if isinstance(known, SourceStamp) else known
    return known if isinstance(known, dict) else {}


def _label(hashes: dict[str, Any]) -> str:
    mix = f", mix {str(hashes['mix'])[:8]}" if hashes.get("mix") else ""
    return f"the biLM '{hashes.get('name')}' ({str(hashes.get('bilm'))[:8]}{mix})"
