"""The extensions ``._.elmo`` and ``._.elmo_layers`` of Docs, Spans and Tokens.

All functions are at module level, because Docs that refer to them are pickled.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc, Span, Token
from thinc.api import get_array_module
from thinc.types import Floats3d

from .doc_layers import token_hash
from .stored_vectors import NotOnDocError, clear_vectors, get_owners, get_vectors

# Where spaCy itself keeps the values of a Doc's extensions.
LAYERS: Any = ("._.", "elmo_layers", None, None)


def register() -> None:
    """Make the extensions known to spaCy, once in a process."""
    for kind in (Doc, Span, Token):
        for name, (getter, setter) in EXTENSIONS.items():
            if not kind.has_extension(name):
                kind.set_extension(name, getter=getter, setter=setter)


def warn_of_others() -> None:
    """Warn of extensions that have our names, but are others'."""
    for kind in (Doc, Span, Token):
        for name, (getter, _) in EXTENSIONS.items():
            if kind.get_extension(name)[2] is not getter:
                warnings.warn(
                    f"The extension {kind.__name__}._.{name} is not ELMo's: it was set before "
                    f"spacy_elmo was imported, or since. Give yours another name.",
                    stacklevel=2,
                )


def bounds(obj: Doc | Span | Token) -> tuple[Doc, int, int]:
    """The Doc of an object, and its first token and the one behind its last."""
    if isinstance(obj, Doc):
        return obj, 0, len(obj)
    if isinstance(obj, Span):
        return obj.doc, obj.start, obj.end
    return obj.doc, obj.i, obj.i + 1


def get_elmo(obj: Doc | Span | Token) -> Any:
    """``._.elmo``, ``(2P,)``: a Token's vector, zeros for whitespace; of a Doc and a Span the mean
    of its words' vectors, zeros without any."""
    doc, start, end = bounds(obj)
    vectors = get_vectors(doc)
    if isinstance(obj, Token):
        return vectors[start]
    # Whitespace tokens are not words: their zeros would shorten the mean.
    words = np.flatnonzero(doc.to_array([IS_SPACE])[start:end] == 0) + start
    if len(words) == 0:
        return get_array_module(vectors).zeros(vectors.shape[1], dtype="float32")
    return vectors[words].mean(axis=0)


def remove_vectors(obj: Doc | Span | Token, value: Any) -> None:
    """``doc._.elmo = None`` removes the vectors; ``doc.tensor`` stays as it is.

    Raises:
        ValueError: another value, or no Doc.
    """
    clear_vectors(_removed_from(obj, value))


def _removed_from(obj: Doc | Span | Token, value: Any) -> Doc:
    if value is not None or not isinstance(obj, Doc):
        raise ValueError(
            "The extensions '._.elmo' and '._.elmo_layers' are written by the elmo component; they "
            "cannot be set, only removed from a Doc: doc._.elmo = None, doc._.elmo_layers = None."
        )
    return obj


def set_layers(doc: Doc, layers: Floats3d, component: str, bilm: str) -> None:
    """Store all layers on a Doc, with the component's name, the fingerprint of its biLM and a mark
    of the tokens."""
    doc.user_data[LAYERS] = {
        "layers": layers, "component": component, "bilm": bilm, "tokens": token_hash(doc)
    }  # fmt: skip


def stored_by(doc: Doc) -> str | None:
    """Name of the component whose layers are stored on a Doc."""
    return doc.user_data.get(LAYERS, {}).get("component")


def stored_bilm(doc: Doc) -> str:
    """Fingerprint of the biLM whose layers are stored on a Doc, empty if it is not known."""
    return str(doc.user_data.get(LAYERS, {}).get("bilm") or "")


def get_layers(obj: Doc | Span | Token) -> Any:
    """``._.elmo_layers``: all layers ``(L + 1, n_tokens, 2P)``, of a Token ``(L + 1, 2P)``.

    They are on the Doc if the component stores them; in the same process there are layers, too,
    while another component listens to it.

    Raises:
        NotOnDocError: there are none, or the Doc was retokenized since.
    """
    doc, start, end = bounds(obj)
    layers = _layers_of(doc)
    return layers[:, start] if isinstance(obj, Token) else layers[:, start:end]


def _layers_of(doc: Doc) -> Any:
    stored = doc.user_data.get(LAYERS)
    if stored is None:
        for owner in get_owners(doc):
            layers = owner.get(doc)
            if layers is not None:
                return layers
        raise NotOnDocError(
            "This Doc has no ELMo layers: they are stored only if the elmo component's setting "
            "store_layers is true, as in nlp.add_pipe('elmo', config={'store_layers': True}). "
            "Doc.from_docs and Span.as_doc do not copy them: run the component on the new Doc."
        )
    if stored["tokens"] != token_hash(doc):
        raise NotOnDocError(
            "This Doc was retokenized after the elmo component stored its layers, which no longer "
            "fit its tokens. Run the component on it again."
        )
    return stored["layers"]


def remove_layers(obj: Doc | Span | Token, value: Any) -> None:
    """``doc._.elmo_layers = None`` removes them, as spaCy's ``doc_cleaner`` does it.

    Raises:
        ValueError: another value, or no Doc.
    """
    doc = _removed_from(obj, value)
    doc.user_data.pop(LAYERS, None)
    for owner in get_owners(doc):
        owner.remove(doc)
    if doc.tensor is None:  # the vectors were removed, too
        clear_vectors(doc)  # type: ignore[unreachable]


EXTENSIONS = {"elmo": (get_elmo, remove_vectors), "elmo_layers": (get_layers, remove_layers)}
register()  # at import, so that unpickled pipelines and Docs have them too
