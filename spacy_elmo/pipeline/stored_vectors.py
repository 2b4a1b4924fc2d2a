"""ELMo's vectors of a Doc: the array that is its tensor until another component replaces that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from traceback import walk_stack
from typing import Any, NoReturn
from weakref import ref

import numpy as np
import srsly
from spacy.attrs import IDX, LENGTH
from spacy.tokens import Doc, DocBin
from thinc.api import get_array_module, to_numpy
from thinc.types import Floats2d

from .doc_layers import DocLayers

# The key of an extension of the Doc's first token: only such values does `Doc.from_docs` move to
# where each Doc starts in the joined Doc, without a warning.
KEY: Any = ("._.", "elmo", 0, None)
HOOK = "elmo"  # of `slice_vectors`: `Span.as_doc` copies no user data, but hooks

Rows = np.ndarray | Callable[[], np.ndarray] | None  # or what computes them when they are needed


class NotOnDocError(ValueError, AttributeError):
    """Vectors or layers are missing; also for ``hasattr``, as spaCy's ``doc_cleaner`` uses it."""


class DocVectors:
    """The entry in a Doc's ``user_data``: its vectors, and which characters they belong to.

    Where the vectors still are ``doc.tensor``, pickles, copies and bytes contain a checksum of
    each row instead: spaCy serializes the tensor itself.

    Args:
        doc: the Doc.
        vectors: ``(n_tokens, 2P)``.
        owners: the `DocLayers` of the components that have read the Doc.
        weak: let the arrays go with ``doc.tensor``.
        compared: the rows of compared vectors, see `similarity.ComparedRows`; None without
            statistics.
    """

    def __init__(
        self,
        doc: Doc,
        vectors: Floats2d,
        owners: Sequence[DocLayers] = (),
        weak: bool = False,
        compared: Rows = None,
    ):
        self._compared = compared
        self.owners = tuple(owners)
        self.ends = _token_ends(doc)
        self._doc = ref(doc)
        self._vectors: Callable[[], Any] = lambda: vectors
        if weak:
            own = ref(self)
            self._vectors = ref(vectors, lambda _: _drop_compared(own()))

    @property
    def vectors(self) -> Any:
        """The array ``(n_tokens, 2P)``; None if it was freed with the tensor."""
        return self._vectors()

    def compared(self) -> np.ndarray | None:
        """The rows of compared vectors, ``(n_tokens, 3P)``; None without statistics."""
        rows = self._compared
        if callable(rows):
            self._compared = rows = rows()
        return rows

    def fits(self, doc: Doc) -> bool:
        """Return whether these are the vectors of a Doc, row by row, as when they were written."""
        vectors = self.vectors
        if vectors is None or doc.tensor is None:
            return False
        if self._doc() is not doc or len(vectors) != len(doc):
            return False
        return vectors is doc.tensor or np.array_equal(self.ends, _token_ends(doc))

    def overlaps(self, tensor: Any) -> bool:
        """Return whether an array is a view of the vectors."""
        vectors = self.vectors
        if vectors is None or type(tensor) is not type(vectors):
            return False
        return bool(get_array_module(vectors).may_share_memory(tensor, vectors))

    def state(self) -> dict[str, Any]:
        """``ends``, ``vectors``, ``sums`` of their rows, ``compared``; None for what was freed."""
        vectors, compared = self.vectors, self.compared()
        sums = None if vectors is None else _row_sums(vectors)
        return {"ends": self.ends, "sums": sums, "vectors": vectors, "compared": compared}

    def to_dict(self) -> dict[str, Any]:
        """The state as it is serialized, without vectors that are serialized with the Doc."""
        state, doc = self.state(), self._doc()
        if state["vectors"] is not None:
            state["vectors"] = to_numpy(state["vectors"])
            if doc is not None and doc.tensor is self.vectors and _added_to_docbin() is None:
                state["vectors"] = None
        return state

    def __reduce__(self) -> Any:
        return SavedVectors, (self.to_dict(),)

    def __copy__(self) -> DocVectors:
        return self  # for `Doc.from_docs` and `Span.as_doc`; nothing changes it


class SavedVectors:
    """The entry of a Doc that comes from a pickle, a copy or bytes; its first use replaces it.

    Args:
        state: see `DocVectors.to_dict`.
    """

    def __init__(self, state: dict[str, Any]):
        self._state = state

    def state(self) -> dict[str, Any]:
        """See `DocVectors.state`; None also for vectors that are the Doc's tensor."""
        return self._state

    def to_dict(self) -> dict[str, Any]:
        """The state as it is serialized: for a `DocBin` with the vectors that are in the tensor."""
        doc = _added_to_docbin()
        if doc is None or doc.tensor is None or self._state["vectors"] is not None:
            return self._state
        keys = _entry_keys(doc)
        try:
            vectors, compared = _join(doc, keys)
        except ValueError:  # they are no longer there
            return self._state
        starts = [key[2] for key in keys]
        i = next(i for i, key in enumerate(keys) if doc.user_data[key] is self)
        ends, start, stop = _token_ends(doc), starts[i], [*starts, inf][i + 1]
        own = (ends > start) & (ends <= stop)
        vectors = to_numpy(vectors)[own]
        return {
            "ends": ends[own] - start, "sums": _row_sums(vectors), "vectors": vectors,
            "compared": None if compared is None else compared[own],
        }  # fmt: skip

    def __reduce__(self) -> Any:
        return SavedVectors, (self.to_dict(),)


Entry = DocVectors | SavedVectors | dict[str, Any]  # a dict was read before this was imported


def _state(entry: Entry) -> dict[str, Any]:
    return entry if isinstance(entry, dict) else entry.state()


def _drop_compared(entry: DocVectors | None) -> None:
    if entry is not None:
        entry._compared = None


@srsly.msgpack_encoders("spacy-elmo.DocVectors")
def encode(obj: Any, chain: Callable[[Any], Any] | None = None) -> Any:
    """For a Doc's ``user_data`` in bytes."""
    if isinstance(obj, DocVectors | SavedVectors):
        return obj.to_dict()
    return obj if chain is None else chain(obj)


@srsly.msgpack_decoders("spacy-elmo.DocVectors")
def decode(obj: Any, chain: Callable[[Any], Any] | None = None) -> Any:
    """For a Doc's ``user_data`` from bytes."""
    if isinstance(obj, dict) and obj.keys() == {"ends", "sums", "vectors", "compared"}:
        return SavedVectors(obj)
    return obj if chain is None else chain(obj)


def get_vectors(doc: Doc) -> Any:
    """ELMo's vectors of a Doc, ``(n_tokens, 2P)``, even if its tensor was replaced.

    Raises:
        NotOnDocError: no elmo component has read the Doc, or its vectors were removed.
        ValueError: the Doc was retokenized or its tensor replaced since, so that there are no
            vectors for some tokens.
    """
    entry = doc.user_data.get(KEY)
    if isinstance(entry, DocVectors) and entry.fits(doc):
        return entry.vectors
    if doc.tensor is None:
        clear_vectors(doc)  # type: ignore[unreachable]
        raise NotOnDocError(
            "This Doc's ELMo vectors were removed: remove 'tensor' from what the 'doc_cleaner' of "
            "the pipeline cleans, or the component itself, to keep them."
        )
    if isinstance(entry, DocVectors) and entry.overlaps(doc.tensor) and len(doc.tensor) == len(doc):
        return doc.tensor  # on a GPU spaCy merges the rows of tokens in place
    keys = _entry_keys(doc)
    vectors, compared = _join(doc, keys) if keys else doc.user_hooks.get(HOOK, _refuse)(doc)
    set_vectors(doc, vectors, get_owners(doc), compared=compared)
    return vectors


def get_compared(doc: Doc) -> np.ndarray | None:
    """The rows of a Doc's compared vectors, ``(n_tokens, 3P)``; None without statistics.

    Raises:
        NotOnDocError, ValueError: see `get_vectors`.
    """
    get_vectors(doc)
    entry = doc.user_data[KEY]
    rows, ends = entry.compared(), _token_ends(doc)
    if rows is None or np.array_equal(entry.ends, ends):
        return rows
    return rows[np.searchsorted(entry.ends, ends)]  # tokens were merged


def set_vectors(
    doc: Doc,
    vectors: Floats2d,
    owners: Sequence[DocLayers] = (),
    weak: bool = False,
    compared: Rows = None,
) -> None:
    """Write a Doc's entry, see `DocVectors`; it replaces earlier ones."""
    for key in _entry_keys(doc):
        del doc.user_data[key]
    doc.user_data[KEY] = DocVectors(doc, vectors, owners, weak, compared)


def clear_vectors(doc: Doc) -> None:
    """Remove a Doc's vectors; its tensor stays as it is."""
    for key in _entry_keys(doc):
        del doc.user_data[key]
    doc.user_hooks.pop(HOOK, None)


def get_owners(doc: Doc) -> tuple[DocLayers, ...]:
    """The `DocLayers` of the components that have read a Doc in this process."""
    entry = doc.user_data.get(KEY)
    return entry.owners if isinstance(entry, DocVectors) else ()


def _join(doc: Doc, keys: Sequence[Any]) -> tuple[Any, np.ndarray | None]:
    """Vectors and compared rows by where tokens end, from the entries of one or several Docs."""
    states = [_state(doc.user_data[key]) for key in keys]
    ends = np.concatenate([state["ends"] + key[2] for key, state in zip(keys, states, strict=True)])
    own = _token_ends(doc)
    rows = np.arange(len(own)) if np.array_equal(ends, own) else np.searchsorted(ends, own)
    if len(own) and (rows.max() >= len(ends) or not np.array_equal(ends[rows], own)):
        raise ValueError(
            f"This Doc was retokenized after the elmo component, or joined from Docs that it has "
            f"not all read: there are vectors for {len(ends)} tokens, but not for each of its "
            f"{len(doc)}. Run the component on it again."
        )
    parts: list[Any] = [state.get("compared") for state in states]
    are_alike = len({None if part is None else part.shape[1] for part in parts}) == 1
    compared = np.concatenate(parts)[rows] if are_alike and parts[0] is not None else None
    arrays = [state["vectors"] for state in states]
    is_whole = all(array is not None for array in arrays)
    # Of an empty Doc, any tensor would do.
    if all(state["sums"] is not None for state in states) and (len(own) or not is_whole):
        sums = np.concatenate([state["sums"] for state in states])[rows]
        if doc.tensor.ndim == 2 and np.array_equal(_row_sums(doc.tensor), sums):
            # the array that spaCy has copied, sliced, merged or loaded
            return doc.tensor, compared
    if not is_whole:
        raise ValueError(
            "This Doc's ELMo vectors were those of doc.tensor, which was replaced since. Run the "
            "elmo component on it again, and read ._.elmo before the tensor is replaced."
        )
    return get_array_module(arrays[0]).concatenate(arrays)[rows], compared


def slice_vectors(entry: Entry, doc: Doc) -> tuple[Any, np.ndarray | None]:
    """The tensor and the compared rows of a Doc that `Span.as_doc` made.

    The tensor has to be a part of the whole Doc's vectors.

    Args:
        entry: of the whole Doc.
        doc: the Doc.
    """
    state = _state(entry)
    sums, compared = state["sums"], state["compared"]
    n_tokens = len(doc)
    is_part = sums is not None and doc.tensor.ndim == 2 and len(doc.tensor) == n_tokens
    if not is_part or not np.isin(own := _row_sums(doc.tensor), sums).all():
        _refuse(doc)
    if compared is not None and n_tokens:
        matches = (np.lib.stride_tricks.sliding_window_view(sums, n_tokens) == own).all(axis=1)
        if not matches.any():
            raise ValueError(
                "This Doc, a part of another one, was retokenized: its ELMo vectors no longer fit "
                "its tokens. Run the 'elmo' component on it, or make it with "
                "span.as_doc(copy_user_data=True)."
            )
        compared = compared[matches.argmax() :][:n_tokens]
    return doc.tensor, compared


def _refuse(doc: Doc) -> NoReturn:
    raise NotOnDocError(
        "This Doc has no ELMo vectors: run it through a pipeline with the 'elmo' component "
        "first. (If it is a part of one: span.as_doc(copy_user_data=True) has them.)"
    )


def _entry_keys(doc: Doc) -> list[Any]:
    """Of its entry, or those of the Docs that it was joined from, by where these start in it."""
    every: Iterable[Any] = doc.user_data  # spaCy's annotation knows strings only
    keys = (key for key in every if isinstance(key, tuple) and len(key) == 4)
    return sorted(key for key in keys if key[:2] == KEY[:2] and key[3] is None)


def _token_ends(doc: Doc) -> np.ndarray:
    """The end of each token, in characters, ``(n_tokens,)``."""
    return doc.to_array([IDX, LENGTH]).reshape(-1, 2).sum(axis=1).astype("int32")


def _row_sums(vectors: Any) -> np.ndarray:
    """A checksum of each row, ``(n_tokens,)``."""
    array = np.ascontiguousarray(to_numpy(vectors), dtype="float32")
    return array.view("uint32").sum(axis=1, dtype="uint32")


def _added_to_docbin() -> Any:
    """The Doc that is added to a `DocBin`, which leaves out tensors, if that asks for what is
    serialized; else None.

    It serializes ``user_data`` exactly as a Doc does; only the call stack shows the difference.
    """
    frames = (frame for frame, _ in walk_stack(None) if frame.f_code is DocBin.add.__code__)
    return next((frame.f_locals["doc"] for frame in frames), None)
