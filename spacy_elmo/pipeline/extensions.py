"""The extensions ``._.elmo`` and ``._.elmo_layers`` of Docs, Spans and Tokens.

All functions are at module level, because Docs that refer to them are pickled.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc, Span, Token
from thinc.api import get_array_module
from thinc.types import Floats1d, Floats2d, Floats3d

from .doc_layers import token_hash
from .stored_vectors import NotOnDocError, clear_vectors, get_owners, get_vectors

# Where spaCy itself keeps the values of a Doc's extensions.
LAYERS: Any = ("._.", "elmo_layers", None, None)


def register() -> None:
    """Make the extensions known to spaCy, once in a process."""
    if not Doc.has_extension("elmo"):
        Doc.set_extension("elmo", getter=doc_mean, setter=remove_vectors)
        Span.set_extension("elmo", getter=span_mean, setter=refuse)
        Token.set_extension("elmo", getter=token_vector, setter=refuse)
        Doc.set_extension("elmo_layers", getter=get_layers, setter=clear_layers)
        Span.set_extension("elmo_layers", getter=span_layers, setter=refuse)
        Token.set_extension("elmo_layers", getter=token_layers, setter=refuse)


def refuse(obj: Doc | Span | Token, value: Any) -> NoReturn:
    """A setter."""
    raise ValueError(
        "The extensions '._.elmo' and '._.elmo_layers' are written by the elmo component; they "
        "cannot be set, only removed from a Doc: doc._.elmo = None, doc._.elmo_layers = None."
    )


def remove_vectors(doc: Doc, value: Any) -> None:
    """``doc._.elmo = None`` removes the vectors; ``doc.tensor`` stays as it is.

    Raises:
        ValueError: another value.
    """
    if value is not None:
        refuse(doc, value)
    clear_vectors(doc)


def doc_mean(doc: Doc) -> Any:
    """``doc._.elmo``: the mean of its words' vectors, ``(2P,)``; zeros without any."""
    return _mean(doc, 0, len(doc))


def span_mean(span: Span) -> Any:
    """``span._.elmo``: the mean of its words' vectors, ``(2P,)``; zeros without any."""
    return _mean(span.doc, span.start, span.end)


def token_vector(token: Token) -> Floats1d:
    """``token._.elmo``: the token's vector, ``(2P,)``; zeros for whitespace."""
    return get_vectors(token.doc)[token.i]


def _mean(doc: Doc, start: int, end: int) -> Any:
    # Whitespace tokens are not words: their zeros would shorten the mean.
    vectors = get_vectors(doc)
    words = np.flatnonzero(doc.to_array([IS_SPACE])[start:end] == 0) + start
    if len(words) == 0:
        return get_array_module(vectors).zeros(vectors.shape[1], dtype="float32")
    return vectors[words].mean(axis=0)


def set_layers(doc: Doc, layers: Floats3d, component: str) -> None:
    """Store all layers on a Doc, with the component's name and a mark of the tokens."""
    doc.user_data[LAYERS] = {"layers": layers, "component": component, "tokens": token_hash(doc)}


def stored_by(doc: Doc) -> str | None:
    """Name of the component whose layers are stored on a Doc."""
    return doc.user_data.get(LAYERS, {}).get("component")


def get_layers(doc: Doc) -> Floats3d:
    """``doc._.elmo_layers``: all layers ``(L + 1, n_tokens, 2P)``.

    They are on the Doc if the component stores them; in the same process there are layers, too,
    while another component listens to it.

    Raises:
        NotOnDocError: there are none.
        ValueError: the Doc was retokenized since.
    """
    stored = doc.user_data.get(LAYERS)
    if stored is None:
        for owner in get_owners(doc):
            layers = owner.get(doc)
            if layers is not None:
                return layers
        raise NotOnDocError(
            "This Doc has no ELMo layers: they are stored only if the elmo component's setting "
            "store_layers is true, as in nlp.add_pipe('elmo', config={'store_layers': True})."
        )
    if stored["tokens"] != token_hash(doc):
        raise NotOnDocError(
            "This Doc was retokenized after the elmo component stored its layers, which no longer "
            "fit its tokens. Run the component on it again."
        )
    return stored["layers"]


def span_layers(span: Span) -> Floats3d:
    """``span._.elmo_layers``: all layers of its tokens, ``(L + 1, n_tokens, 2P)``; see
    `get_layers`."""
    return get_layers(span.doc)[:, span.start : span.end]


def token_layers(token: Token) -> Floats2d:
    """``token._.elmo_layers``: all layers of the token, ``(L + 1, 2P)``; see `get_layers`."""
    return get_layers(token.doc)[:, token.i]


def clear_layers(doc: Doc, value: Any) -> None:
    """``doc._.elmo_layers = None`` removes them, as spaCy's ``doc_cleaner`` does it.

    Raises:
        ValueError: another value.
    """
    if value is not None:
        refuse(doc, value)
    doc.user_data.pop(LAYERS, None)
    for owner in get_owners(doc):
        owner.remove(doc)
    if doc.tensor is None:  # the vectors were removed, too
        clear_vectors(doc)  # type: ignore[unreachable]


register()  # at import, so that unpickled pipelines and Docs have them too
