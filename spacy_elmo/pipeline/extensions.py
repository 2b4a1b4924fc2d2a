"""What users read off a Doc: ``._.elmo``, ``._.elmo_layers``, and spaCy's own vectors.

All functions are at module level, because Docs that refer to them are pickled.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import numpy as np
from spacy.attrs import IS_SPACE
from spacy.lexeme import Lexeme
from spacy.tokens import Doc, Span, Token
from thinc.api import get_array_module, to_numpy
from thinc.types import Floats1d, Floats2d, Floats3d

from .compared_vectors import compared_vector
from .doc_layers import token_hash
from .doc_vectors import (
    HOOK,
    KEY,
    NotOnDocError,
    clear_vectors,
    get_compared,
    get_owners,
    get_vectors,
)

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


def compared_doc_vector(doc: Doc) -> Any:
    """``doc.vector``: by which Docs are compared, ``(3P,)``, see `pipeline.comparison`; without
    statistics ``doc._.elmo``."""
    rows = get_compared(doc)
    return doc_mean(doc) if rows is None else compared_vector(rows)


def compared_span_vector(span: Span) -> Any:
    """``span.vector``, as `compared_doc_vector`."""
    rows = get_compared(span.doc)
    return span_mean(span) if rows is None else compared_vector(rows[span.start : span.end])


def compared_token_vector(token: Token) -> Any:
    """``token.vector``, as `compared_doc_vector`."""
    rows = get_compared(token.doc)
    return token_vector(token) if rows is None else compared_vector(rows[token.i : token.i + 1])


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


def set_vector_hooks(doc: Doc) -> None:
    """Take ``vector``, ``has_vector``, ``vector_norm`` and ``similarity`` from ELMo.

    The component does it; a Doc that comes back from bytes (of a `DocBin`, or of a process of
    ``nlp.pipe(n_process=2)``) has lost its hooks, and gets them again by a call of this.

    Raises:
        NotOnDocError, ValueError: the Doc has no vectors, see `get_vectors`.
    """
    get_vectors(doc)
    hooks: list[tuple[dict[str, Callable[..., Any]], Callable[..., Any]]] = [
        (doc.user_hooks, compared_doc_vector),
        (doc.user_span_hooks, compared_span_vector),
        (doc.user_token_hooks, compared_token_vector),
    ]
    for hook, vector in hooks:
        hook.update(vector=vector, has_vector=has_vector, similarity=similarity)
    # Spans and Tokens compute it from `vector` (and Spans would call the wrong hook for it).
    doc.user_hooks["vector_norm"] = vector_norm
    doc.user_hooks[HOOK] = doc.user_data[KEY]
    if multiprocessing.parent_process() is not None:
        ignore_hook_warning()


@cache  # once in a process
def ignore_hook_warning() -> None:
    """Workers send their Docs back as bytes, without the hooks; spaCy would warn for every Doc."""
    warnings.filterwarnings("ignore", message=r"\[W109\]")


def has_vector(obj: Doc | Span | Token) -> bool:
    """Whether there is a vector that is not all zeros."""
    return bool(obj.vector.any())


def vector_norm(doc: Doc) -> float:
    """The vector's Euclidean length."""
    return _norm(doc.vector)


def similarity(obj: Doc | Span | Token, other: Any) -> float:
    """Cosine of two vectors, 0 if one of them is all zeros.

    If one of them has no context (a Doc's, a sentence's), the words alone are compared.

    Raises:
        ValueError: the other object's vector has another size, or it is a Lexeme.
    """
    if isinstance(other, Lexeme):
        raise ValueError(
            f"Cannot compare an ELMo vector with the lexeme '{other.text}', which has no context. "
            f"Run the word through the pipeline, nlp({other.text!r})[0], or set the elmo "
            f"component's vectors = \"vocab\" to compare by the vocab's static vectors."
        )
    a, b = to_numpy(obj.vector), to_numpy(other.vector)
    if not a.any() or not b.any():
        return 0.0
    if a.shape != b.shape:
        raise ValueError(
            f"Cannot compare a {a.shape[0]}-dimensional ELMo vector with a "
            f"{b.shape[0]}-dimensional one: run both texts through the same pipeline. If one comes "
            f"from bytes, call spacy_elmo.set_vector_hooks(doc) on its Doc."
        )
    n_words = len(a) // 3  # dimensions; two thirds are context, see `compared_vector`
    if not a[n_words:].any() or not b[n_words:].any():
        a, b = a[:n_words], b[:n_words]
    return float(a.dot(b)) / (_norm(a) * _norm(b))


def _norm(vector: Any) -> float:
    return float(vector.dot(vector)) ** 0.5


register()  # at import, so that unpickled pipelines and Docs have them too
