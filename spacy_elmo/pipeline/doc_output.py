"""What elmo components have computed for Docs, and what reads it: the extensions ``._.elmo`` and
``._.elmo_layers``, and spaCy's hooks for ``vector`` and ``similarity``.

A `DocOutput` lives beside its Doc, as long as the Doc does. It is not copied or serialized with the
Doc: only ``doc.tensor`` is, with a checksum, and what the component stores. All functions are at
module level, because pickled Docs refer to them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary

import numpy as np
from spacy.attrs import IDX, IS_SPACE, LENGTH, ORTH
from spacy.tokens import Doc, Span, Token
from thinc.api import get_array_module, to_numpy
from thinc.types import Floats3d

from ..text.segments import DocPart
from ..weights.statistics import Statistics
from .batch import Batch
from .similarity import compared_vector, compute_rows, cosine, norm

# Keys of `user_data`, in the form of spaCy's extensions.
LAYERS: Any = ("._.", "elmo_layers", None, None)
VECTORS: Any = ("._.", "elmo_vectors", None, None)
# These belong to the first token, because `Doc.from_docs` joins other values with a warning.
CHECKSUM: Any = ("._.", "elmo_checksum", 0, None)
ENDS: Any = ("._.", "elmo_ends", 0, None)  # where the tokens of the stored arrays end

MIN_STD = 1e-6  # smallest divisor for a dimension of a layer
MAX_FLOAT16 = 65504


class NotOnDocError(ValueError, AttributeError):
    """Vectors or layers are missing. An AttributeError, so that ``hasattr`` returns False: spaCy's
    ``doc_cleaner`` uses it."""


@dataclass(eq=False, slots=True)
class DocOutput:
    """What one component has computed for a Doc. It must not refer to the Doc, which would then
    never be freed.

    Attributes:
        ends: where each token ends in the text, ``(n_tokens,)``; identifies the tokens.
        vectors: ``(n_tokens, 2P)``; None during an update, until the component annotates.
        layers: ``(L + 1, n_tokens, 2P)`` if a listener or ``store`` needs them.
        compared: None if the weights have no statistics.
        bilm: weak reference to the biLM; None for sample Docs, whose layers are zeros.
        batch: the training batch with this Doc, and the Doc's index in it.
    """

    ends: np.ndarray
    vectors: Any = None
    layers: Floats3d | None = None
    compared: ComparedRows | None = None
    bilm: ReferenceType[Any] | None = None
    batch: tuple[ReferenceType[Batch], int] | None = None

    def fill(self, part: DocPart, layers: Floats3d, vectors: Any) -> None:
        """Write the layers and vectors of a part of the Doc into the arrays."""
        rows = slice(part.start, part.end)
        self.vectors[rows] = vectors
        if self.layers is not None:
            self.layers[:, rows] = layers
        if self.compared is not None:
            self.compared.fill(part, layers)

    def fits(self, doc: Doc) -> bool:
        """Return whether a Doc still has the tokens that the component read."""
        if doc.tensor is self.vectors is not None and len(doc) == len(self.ends):
            return True  # the retokenizer would have replaced the tensor
        return np.array_equal(self.ends, token_ends(doc))

    def open_batch(self) -> Batch | None:
        """The training batch with this Doc, if it still accepts gradients."""
        batch = None if self.batch is None else self.batch[0]()
        return None if batch is None or batch.is_closed else batch


class ComparedRows:
    """The rows from which ``vector`` and ``similarity`` are computed, at their first use.

    Args:
        statistics: the statistics of the weights.
        part: the first part of the Doc.
        read: maps the words of a sentence to the spellings that the statistics count.
    """

    def __init__(
        self, statistics: Statistics, part: DocPart, read: Callable[[list[str]], Sequence[str]]
    ):
        self._statistics, self._sentences, self._read = statistics, part.sentences, read
        self._orths, self._strings = part.doc.to_array([ORTH]), part.doc.vocab.strings
        p = len(statistics.word_mean)
        self._words = np.zeros((len(part.doc), p), dtype="float32")
        self._top = np.zeros((len(part.doc), 2 * p), dtype="float16")

    def fill(self, part: DocPart, layers: Floats3d) -> None:
        """Keep the token layer and the top layer of a part, given all of its layers."""
        statistics, rows = self._statistics, slice(part.start, part.end)
        self._words[rows] = to_numpy(layers[0, :, : self._words.shape[1]])
        top = (to_numpy(layers[-1]) - statistics.mean[-1]) / np.maximum(statistics.std[-1], MIN_STD)
        self._top[rows] = np.clip(top, -MAX_FLOAT16, MAX_FLOAT16)

    def __getstate__(self) -> dict[str, Any]:
        return {"rows": self.rows}  # copies and pickles need nothing else

    @cached_property
    def rows(self) -> np.ndarray:
        """See `compute_rows`."""
        known, frequencies = self._statistics.frequencies, np.zeros(len(self._orths), "float32")
        for tokens in self._sentences.tokens:
            words = self._read([self._strings[orth] for orth in self._orths[tokens].tolist()])
            frequencies[tokens] = [known.get(word, 0.0) for word in words]
        return compute_rows(self._statistics, self._sentences, frequencies, self._words, self._top)


# Each Doc's outputs by the keys of the components, the latest output last.
_outputs: WeakKeyDictionary[Doc, dict[str, DocOutput]] = WeakKeyDictionary()


def token_ends(doc: Doc) -> np.ndarray:
    """Where each token ends in the text, ``(n_tokens,)``."""
    return doc.to_array([IDX, LENGTH]).reshape(-1, 2).sum(axis=1)


def rows_of(doc: Doc, ends: np.ndarray) -> slice | np.ndarray:
    """The rows of a Doc's tokens in an array for tokens with these ends. A merged token has the row
    of its last part, as in spaCy's tensors.

    Raises:
        NotOnDocError: tokens were split, or the Doc is a part of the one that was read.
    """
    now = token_ends(doc)
    if np.array_equal(now, ends):
        return slice(None)
    if not np.isin(now, ends).all() or (len(now) and now[-1] != ends[-1]):
        raise NotOnDocError(
            "This Doc has no ELMo vectors: its tokens were split since the component read it, or "
            "it is a part of the Doc that was read. Run the 'elmo' component on it."
        )
    return np.searchsorted(ends, now)


def remember(doc: Doc, key: str, output: DocOutput) -> None:
    """Keep a component's output for a Doc; it replaces the component's earlier output."""
    outputs = _outputs.setdefault(doc, {})
    before = outputs.pop(key, None)
    if before is not None and before.open_batch() is not None and output.batch is None:
        if np.array_equal(before.ends, output.ends):
            output.batch = before.batch  # the component annotates during an update
    outputs[key] = output


def last_output(doc: Doc, keys: Collection[str] | None = None) -> DocOutput | None:
    """The latest output for a Doc from the components with these keys, or from any component."""
    for key, output in reversed(_outputs.get(doc, {}).items()):
        if key in keys if keys is not None else output.bilm is not None:
            return output
    return None


def bounds(obj: Doc | Span | Token) -> tuple[Doc, int, int]:
    """The Doc, the index of the first token, and the index after the last token."""
    if isinstance(obj, Doc):
        return obj, 0, len(obj)
    if isinstance(obj, Span):
        return obj.doc, obj.start, obj.end
    return obj.doc, obj.i, obj.i + 1


def store(doc: Doc, output: DocOutput, what: Collection[str]) -> None:
    """Write what ``doc.to_bytes`` includes: a checksum of the vectors, and the arrays that the
    component stores. They replace what another component has stored."""
    doc.user_data[CHECKSUM] = checksum(output.vectors)
    for key, array in ((LAYERS, output.layers), (VECTORS, output.vectors), (ENDS, output.ends)):
        doc.user_data.pop(key, None)
        if key[1].removeprefix("elmo_") in what or (key is ENDS and what):
            doc.user_data[key] = to_numpy(array)


def _stored(doc: Doc, key: Any) -> Any:
    """A stored array; None if there is none, or if the Doc was retokenized since."""
    ends: Any = doc.user_data.get(ENDS)
    is_same = ends is not None and np.array_equal(ends, token_ends(doc))
    return doc.user_data.get(key) if is_same else None


def checksum(vectors: Any) -> int:
    """A checksum that identifies ELMo's vectors in a Doc from bytes."""
    array = np.ascontiguousarray(to_numpy(vectors), dtype="float32")
    return zlib.crc32(array.data, array.shape[1])


def get_vectors(doc: Doc) -> Any:
    """ELMo's vectors for a Doc, ``(n_tokens, 2P)``, even if another component has replaced its
    tensor.

    Raises:
        NotOnDocError: there are none.
    """
    output = last_output(doc)
    if output is not None and output.vectors is not None:
        is_whole = output.fits(doc)
        return output.vectors if is_whole else output.vectors[rows_of(doc, output.ends)]
    if (stored := _stored(doc, VECTORS)) is not None:
        return stored
    known, tensor = doc.user_data.get(CHECKSUM), doc.tensor
    is_matrix = tensor is not None and tensor.ndim == 2 and len(tensor) == len(doc)
    if is_matrix and known is not None and known == checksum(tensor):
        return tensor
    raise NotOnDocError(
        "This Doc has no ELMo vectors: no 'elmo' component has read it, its tensor was removed or "
        "replaced on the way, or it was cut from another Doc, or joined from several. Read "
        'doc.tensor, run the component on it, or set its store = ["vectors"] for a DocBin.'
    )


def get_elmo(obj: Doc | Span | Token) -> Any:
    """``._.elmo``, ``(2P,)``: the vector of a Token, the mean vector of the words of a Doc or Span.
    Whitespace has zeros."""
    doc, start, end = bounds(obj)
    vectors = get_vectors(doc)
    if isinstance(obj, Token):
        return vectors[start]
    # Whitespace tokens are not words: their zeros would shorten the mean.
    words = np.flatnonzero(doc.to_array([IS_SPACE])[start:end] == 0) + start
    if len(words) == 0:
        return get_array_module(vectors).zeros(vectors.shape[1], dtype="float32")
    return vectors[words].mean(axis=0)


def get_layers(obj: Doc | Span | Token) -> Any:
    """``._.elmo_layers``: all layers ``(L + 1, n_tokens, 2P)``; ``(L + 1, 2P)`` for a Token.

    A Doc has them if the component stores them; in the same process also if a listener needs them.

    Raises:
        NotOnDocError: there are none, or the Doc was retokenized since.
    """
    doc, start, end = bounds(obj)
    output = last_output(doc)
    if output is None:
        layers = _stored(doc, LAYERS)
    else:
        layers = output.layers if output.fits(doc) else None
    if layers is None:
        raise NotOnDocError(
            'This Doc has no ELMo layers, or was retokenized since. Set store = ["layers"] of the '
            "last elmo component, and run it on this Doc, even if it was cut or joined from others."
        )
    return layers[:, start] if isinstance(obj, Token) else layers[:, start:end]


def add_hooks(doc: Doc, output: DocOutput) -> None:
    """Let ELMo compute ``vector``, ``has_vector``, ``vector_norm`` and ``similarity``.

    Copies and pickles of the Doc keep the hooks with their vectors; bytes lose them, and spaCy
    warns (W109).
    """
    hooks: dict[str, Any] = {
        "vector": partial(vector, output.ends, output.compared),
        "has_vector": has_vector,
        "similarity": similarity,
    }
    # In new dicts: `Span.as_doc` shares those of the whole Doc.
    doc.user_span_hooks = {**doc.user_span_hooks, **hooks}
    doc.user_token_hooks = {**doc.user_token_hooks, **hooks}
    # Spans and Tokens compute `vector_norm` from `vector`; Spans would call the wrong hook for it.
    doc.user_hooks = {**doc.user_hooks, **hooks, "vector_norm": vector_norm}


def vector(ends: np.ndarray, compared: ComparedRows | None, obj: Doc | Span | Token) -> Any:
    """The vector that ``similarity`` compares, ``(3P,)``; ``._.elmo`` if there are no statistics.

    Args:
        ends: see `DocOutput`.
        compared: rows for the tokens of the Doc; None if the weights have no statistics.
        obj: a Doc, or a Span or Token in it.

    Raises:
        NotOnDocError: tokens were split, or the Doc is a part of the one that was read.
    """
    if compared is None:
        return get_elmo(obj)
    doc, start, end = bounds(obj)
    return compared_vector(compared.rows[rows_of(doc, ends)][start:end])


def compared_rows(doc: Doc) -> np.ndarray | None:
    """The rows from which the compared vectors are computed, ``(n_tokens, 3P)``; None if the
    weights have no statistics.

    Raises:
        NotOnDocError: no component has read the Doc in this process, or tokens were split since.
    """
    output = last_output(doc)
    if output is None or output.vectors is None:
        raise NotOnDocError("This Doc has not been read: run the 'elmo' component on it.")
    compared = output.compared
    return None if compared is None else compared.rows[rows_of(doc, output.ends)]


def has_vector(obj: Doc | Span | Token) -> bool:
    """Return whether the vector has any number but zero."""
    return bool(obj.vector.any())


def vector_norm(doc: Doc) -> float:
    """The Euclidean length of the vector."""
    return norm(doc.vector)


def similarity(obj: Doc | Span | Token, other: Any) -> float:
    """The `cosine` of two objects' vectors; 0 if one object has no words."""
    vectors = to_numpy(obj.vector), to_numpy(other.vector)
    return cosine(*vectors) if obj.text.strip() and other.text.strip() else 0.0


def remove(obj: Doc | Span | Token, value: Any) -> None:
    """``doc._.elmo = None`` (or ``elmo_layers``) removes all outputs for a Doc, but not its tensor;
    spaCy's ``doc_cleaner`` sets them so.

    Raises:
        ValueError: the value is not None, or the object is not a Doc.
    """
    if value is not None or not isinstance(obj, Doc):
        raise ValueError(
            "The elmo component writes '._.elmo' and '._.elmo_layers': they cannot be set, only "
            "removed from a Doc, doc._.elmo = None."
        )
    _outputs.pop(obj, None)
    for key in (CHECKSUM, ENDS, LAYERS, VECTORS):
        obj.user_data.pop(key, None)


# At import, so that unpickled pipelines and Docs have the extensions too.
for kind in (Doc, Span, Token):
    for name, getter in (("elmo", get_elmo), ("elmo_layers", get_layers)):
        if not kind.has_extension(name):  # keep a user's own extension of this name
            kind.set_extension(name, getter=getter, setter=remove)
