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
from spacy.attrs import IS_SPACE, ORTH
from spacy.tokens import Doc, Span, Token
from thinc.api import get_array_module, to_numpy
from thinc.types import Floats1d, Floats3d

from .kept import drop_layers, kept_layers

# Where spaCy itself keeps the values of a Doc's extensions.
LAYERS: Any = ("._.", "elmo_layers", None, None)


class NoLayersError(ValueError, AttributeError):
    """A Doc has no layers; also for ``hasattr``, with which spaCy's ``doc_cleaner`` looks."""


def register() -> None:
    """Make the extensions known to spaCy, once in a process."""
    if not Doc.has_extension("elmo"):
        Doc.set_extension("elmo", getter=doc_vector, setter=refuse)
        Span.set_extension("elmo", getter=span_vector, setter=refuse)
        Token.set_extension("elmo", getter=token_vector, setter=refuse)
        Doc.set_extension("elmo_layers", getter=get_layers, setter=clear_layers)


def refuse(obj: Doc | Span | Token, value: Any) -> NoReturn:
    """A setter."""
    raise ValueError(
        "The extensions '._.elmo' and '._.elmo_layers' are written by the elmo component; they "
        "cannot be set (but layers be removed: doc._.elmo_layers = None)."
    )


def doc_vector(doc: Doc) -> Floats1d:
    """``doc._.elmo``: mean of the vectors of its words, ``(2P,)``."""
    return _mean(doc, 0, len(doc))


def span_vector(span: Span) -> Floats1d:
    """``span._.elmo``: mean of the vectors of its words, ``(2P,)``."""
    return _mean(span.doc, span.start, span.end)


def token_vector(token: Token) -> Floats1d:
    """``token._.elmo``: the token's vector, ``(2P,)``; zeros for whitespace."""
    return _tensor(token.doc)[token.i]


def _tensor(doc: Doc) -> Any:
    """``doc.tensor``, if it has one row for each token.

    Raises:
        ValueError: no component has set it, or the Doc was retokenized since.
    """
    tensor = doc.tensor
    if tensor is None:
        raise ValueError(
            "This Doc's ELMo vectors were removed: remove 'tensor' from what the 'doc_cleaner' of "
            "the pipeline cleans, or the component itself, to keep them."
        )
    if tensor.ndim != 2 or (tensor.size == 0 and len(doc) > 0):
        raise ValueError(
            "This Doc has no ELMo vectors: run it through a pipeline with the 'elmo' component "
            "first."
        )
    if len(tensor) != len(doc):
        raise ValueError(
            f"This Doc was retokenized after the elmo component: it has {len(doc)} tokens, but "
            f"vectors for {len(tensor)}. Run the component on it again."
        )
    return tensor


def _mean(doc: Doc, start: int, end: int) -> Floats1d:
    tensor = _tensor(doc)
    words = np.flatnonzero(doc.to_array([IS_SPACE])[start:end] == 0) + start
    if len(words) == 0:
        return get_array_module(tensor).zeros(tensor.shape[1], dtype="float32")
    return tensor[words].mean(axis=0)


def set_layers(doc: Doc, layers: Floats3d, component: str) -> None:
    """Keep all layers on a Doc, with who has read them, and a mark of their tokens."""
    doc.user_data[LAYERS] = {"layers": layers, "component": component, "tokens": _mark(doc)}


def stored_by(doc: Doc) -> str | None:
    """The component whose layers are on a Doc."""
    return doc.user_data.get(LAYERS, {}).get("component")


def get_layers(doc: Doc) -> Floats3d:
    """``doc._.elmo_layers``: all layers ``(L + 1, n_tokens, 2P)``.

    They are on the Doc if the component stores them, and at hand in the same process while
    another component listens to it.

    Raises:
        NoLayersError: there are none, or the Doc was retokenized since.
    """
    stored = doc.user_data.get(LAYERS)
    if stored is None:
        for found in kept_layers(doc).values():
            if found.layers.shape[1] == len(doc):
                return found.layers
        raise NoLayersError(
            "This Doc has no ELMo layers: they are kept only if the elmo component's setting "
            "store_layers is true, as in nlp.add_pipe('elmo', config={'store_layers': True})."
        )
    if stored["tokens"] != _mark(doc):
        raise NoLayersError(
            "This Doc was retokenized after the elmo component stored its layers, which no longer "
            "fit its tokens. Run the component on it again."
        )
    return stored["layers"]


def clear_layers(doc: Doc, value: Any) -> None:
    """``doc._.elmo_layers = None`` removes them, as spaCy's ``doc_cleaner`` does it.

    Raises:
        ValueError: another value.
    """
    if value is not None:
        refuse(doc, value)
    doc.user_data.pop(LAYERS, None)
    drop_layers(doc)


def _mark(doc: Doc) -> bytes:
    """What identifies a Doc's tokens, in little room."""
    hashes = doc.to_array([ORTH]).astype(np.uint64)
    places = np.arange(1, len(hashes) + 1, dtype=np.uint64)
    return np.uint64(len(hashes)).tobytes() + (hashes * (2 * places + 1)).sum().tobytes()


def set_vector_hooks(doc: Doc) -> None:
    """Let ``vector``, ``has_vector``, ``vector_norm`` and ``similarity`` come from ELMo."""
    hooks: list[tuple[dict[str, Callable[..., Any]], Callable[..., Any]]] = [
        (doc.user_hooks, doc_vector),
        (doc.user_span_hooks, span_vector),
        (doc.user_token_hooks, token_vector),
    ]
    for of_object, vector in hooks:
        of_object.update(vector=vector, has_vector=has_vector, similarity=similarity)
    # Spans and Tokens compute it from `vector` (and Spans would call the wrong hook for it).
    doc.user_hooks["vector_norm"] = vector_norm
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

    Raises:
        ValueError: the other object's vector has another size.
    """
    a, b = to_numpy(obj.vector), to_numpy(other.vector)
    if a.shape != b.shape:
        raise ValueError(
            f"Cannot compare an ELMo vector of {a.shape[0]} numbers with one of {b.shape[0]}: run "
            f"both texts through the same pipeline."
        )
    norms = _norm(a) * _norm(b)
    return float(a.dot(b)) / norms if norms > 0 else 0.0


def _norm(vector: Any) -> float:
    return float(vector.dot(vector)) ** 0.5


register()  # at import, so that unpickled pipelines and Docs have them too
