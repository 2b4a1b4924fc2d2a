"""What elmo components have read of Docs, and what these answer from it: the extensions ``._.elmo``
and ``._.elmo_layers``, and spaCy's hooks for ``vector`` and ``similarity``.

What was read stands beside the Docs for as long as they exist, not on them: it is neither copied
nor serialized with them. What travels with a Doc is ``doc.tensor``, known by its checksum, and what
the component stores. All functions are at module level, because Docs that refer to them are
pickled.
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

# Where spaCy itself keeps the values of extensions.
LAYERS: Any = ("._.", "elmo_layers", None, None)
VECTORS: Any = ("._.", "elmo_vectors", None, None)
# Of the first token: only such values does `Doc.from_docs` join without a warning.
CHECKSUM: Any = ("._.", "elmo_checksum", 0, None)
ENDS: Any = ("._.", "elmo_ends", 0, None)  # of the tokens for which arrays are stored


MIN_STD = 1e-6  # of a layer's dimension
MAX_FLOAT16 = 65504


class NotOnDocError(ValueError, AttributeError):
    """Vectors or layers are missing; also for ``hasattr``, as spaCy's ``doc_cleaner`` uses it."""


@dataclass(eq=False, slots=True)
class Reading:
    """What one component has read of a Doc. Nothing in it may refer to the Doc, which would then
    never be freed.

    Attributes:
        ends: the character behind each token, ``(n_tokens,)``, by which the tokens are known.
        vectors: ``(n_tokens, 2P)``; None in a training, until the component annotates.
        layers: ``(L + 1, n_tokens, 2P)`` if they are stored or listened to.
        compared: None if the weights have no statistics.
        bilm: the biLM, weakly; None for sample Docs, whose layers are zeros.
        batch: the batch of a training that the Doc is in, and its index there.
    """

    ends: np.ndarray
    vectors: Any = None
    layers: Floats3d | None = None
    compared: ComparedRows | None = None
    bilm: ReferenceType[Any] | None = None
    batch: tuple[ReferenceType[Batch], int] | None = None

    def take(self, part: DocPart, layers: Floats3d, vectors: Any) -> None:
        """Take over the layers and vectors of a part of the Doc."""
        rows = slice(part.start, part.end)
        self.vectors[rows] = vectors
        if self.layers is not None:
            self.layers[:, rows] = layers
        if self.compared is not None:
            self.compared.add(part, layers)

    def fits(self, doc: Doc) -> bool:
        """Return whether a Doc has the tokens that were read."""
        if doc.tensor is self.vectors is not None and len(doc) == len(self.ends):
            return True  # whoever retokenizes replaces the tensor
        return np.array_equal(self.ends, token_ends(doc))

    def open_batch(self) -> Batch | None:
        """The batch that the Doc is in, if its gradients are still awaited."""
        batch = None if self.batch is None else self.batch[0]()
        return None if batch is None or batch.is_closed else batch

    def has_lost_batch(self) -> bool:
        """Return whether gradients of a biLM that learns were awaited, and are no more."""
        bilm = None if self.bilm is None else self.bilm()
        is_lost = self.batch is not None and self.open_batch() is None
        return is_lost and bilm is not None and not bilm.settings.frozen


class ComparedRows:
    """What the compared vectors of a Doc are computed from when they are asked for.

    Args:
        statistics: of the weights.
        part: the first of the Doc, or all of it.
        read: the words of a sentence to those that the statistics have.
    """

    def __init__(
        self, statistics: Statistics, part: DocPart, read: Callable[[list[str]], Sequence[str]]
    ):
        self._statistics, self._sentences, self._read = statistics, part.sentences, read
        self._orths, self._strings = part.doc.to_array([ORTH]), part.doc.vocab.strings
        p = len(statistics.word_mean)
        self._words = np.zeros((len(part.doc), p), dtype="float32")
        self._top = np.zeros((len(part.doc), 2 * p), dtype="float16")

    def add(self, part: DocPart, layers: Floats3d) -> None:
        """Take over what is needed of the layers ``(L + 1, n_tokens, 2P)`` of a part."""
        statistics, rows = self._statistics, slice(part.start, part.end)
        self._words[rows] = to_numpy(layers[0, :, : self._words.shape[1]])
        top = (to_numpy(layers[-1]) - statistics.mean[-1]) / np.maximum(statistics.std[-1], MIN_STD)
        self._top[rows] = np.clip(top, -MAX_FLOAT16, MAX_FLOAT16)

    def __getstate__(self) -> dict[str, Any]:
        return {"rows": self.rows}  # of pickles and deep copies, which need nothing else

    @cached_property
    def rows(self) -> np.ndarray:
        """See `compute_rows`."""
        known, frequencies = self._statistics.frequencies, np.zeros(len(self._orths), "float32")
        for tokens in self._sentences.tokens:
            words = self._read([self._strings[orth] for orth in self._orths[tokens].tolist()])
            frequencies[tokens] = [known.get(word, 0.0) for word in words]
        return compute_rows(self._statistics, self._sentences, frequencies, self._words, self._top)


# Readings of a Doc by the keys of the components, the last one last: all that is kept of Docs.
_readings: WeakKeyDictionary[Doc, dict[str, Reading]] = WeakKeyDictionary()


def token_ends(doc: Doc) -> np.ndarray:
    """The character behind each token, ``(n_tokens,)``."""
    return doc.to_array([IDX, LENGTH]).reshape(-1, 2).sum(axis=1)


def rows_of(doc: Doc, ends: np.ndarray) -> slice | np.ndarray:
    """The rows of a Doc's tokens among those with these ends; of merged tokens that of the last,
    which is what spaCy keeps of a tensor.

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


def note_reading(doc: Doc, key: str, reading: Reading) -> None:
    """Keep what a component has read of a Doc, in place of what it had read before."""
    readings = _readings.setdefault(doc, {})
    before = readings.pop(key, None)
    if before is not None and before.open_batch() is not None and reading.batch is None:
        if np.array_equal(before.ends, reading.ends):
            reading.batch = before.batch  # it annotates in between
    readings[key] = reading


def last_reading(doc: Doc, keys: Collection[str] | None = None) -> Reading | None:
    """The last reading of a Doc, by one of the components with these keys; by any if None."""
    found = reversed(_readings.get(doc, {}).items())
    if keys is None:
        return next((reading for _, reading in found if reading.bilm is not None), None)
    return next((reading for key, reading in found if key in keys), None)


def bounds(obj: Doc | Span | Token) -> tuple[Doc, int, int]:
    """The Doc of an object, and its first token and the one behind its last."""
    if isinstance(obj, Doc):
        return obj, 0, len(obj)
    if isinstance(obj, Span):
        return obj.doc, obj.start, obj.end
    return obj.doc, obj.i, obj.i + 1


def store(doc: Doc, reading: Reading, what: Collection[str]) -> None:
    """Write to a Doc what goes into its bytes: a checksum of the tensor, and what the component
    stores, in place of what another one has stored."""
    doc.user_data[CHECKSUM] = checksum(reading.vectors)
    for key, array in ((LAYERS, reading.layers), (VECTORS, reading.vectors), (ENDS, reading.ends)):
        doc.user_data.pop(key, None)
        if key[1].removeprefix("elmo_") in what or (key is ENDS and what):
            doc.user_data[key] = to_numpy(array)


def _stored(doc: Doc, key: Any) -> Any:
    """An array that is stored on a Doc; None if there is none, or for other tokens."""
    ends: Any = doc.user_data.get(ENDS)
    is_same = ends is not None and np.array_equal(ends, token_ends(doc))
    return doc.user_data.get(key) if is_same else None


def checksum(vectors: Any) -> int:
    """By which the vectors are known when a Doc comes back from bytes."""
    array = np.ascontiguousarray(to_numpy(vectors), dtype="float32")
    return zlib.crc32(array.data, array.shape[1])


def get_vectors(doc: Doc) -> Any:
    """ELMo's vectors of a Doc, ``(n_tokens, 2P)``, even if its tensor was replaced.

    Raises:
        NotOnDocError: they are not there.
    """
    reading = last_reading(doc)
    if reading is not None and reading.vectors is not None:
        is_whole = reading.fits(doc)
        return reading.vectors if is_whole else reading.vectors[rows_of(doc, reading.ends)]
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


def get_layers(obj: Doc | Span | Token) -> Any:
    """``._.elmo_layers``: all layers ``(L + 1, n_tokens, 2P)``, of a Token ``(L + 1, 2P)``.

    They are on the Doc if the component stores them; in the same process there are layers, too,
    while another component listens to it.

    Raises:
        NotOnDocError: there are none, or the Doc was retokenized since.
    """
    doc, start, end = bounds(obj)
    reading = last_reading(doc)
    if reading is None:
        layers = _stored(doc, LAYERS)
    else:
        layers = reading.layers if reading.fits(doc) else None
    if layers is None:
        raise NotOnDocError(
            'This Doc has no ELMo layers, or was retokenized since. Set store = ["layers"] of the '
            "last elmo component, and run it on this Doc, even if it was cut or joined from others."
        )
    return layers[:, start] if isinstance(obj, Token) else layers[:, start:end]


def add_hooks(doc: Doc, reading: Reading) -> None:
    """Take ``vector``, ``has_vector``, ``vector_norm`` and ``similarity`` from ELMo.

    The hooks carry what they compare through copies and pickles; with bytes they are lost, as spaCy
    warns (W109).
    """
    own_vector = partial(vector, reading.ends, reading.compared)
    hooks: dict[str, Any] = {"vector": own_vector, "has_vector": has_vector}
    hooks["similarity"] = similarity
    # In new dicts: a part of a Doc shares those of the whole one.
    doc.user_span_hooks = {**doc.user_span_hooks, **hooks}
    doc.user_token_hooks = {**doc.user_token_hooks, **hooks}
    # Spans and Tokens compute `vector_norm` from `vector` (Spans would call the wrong hook for it).
    doc.user_hooks = {**doc.user_hooks, **hooks, "vector_norm": vector_norm}


def vector(ends: np.ndarray, compared: ComparedRows | None, obj: Doc | Span | Token) -> Any:
    """The vector by which an object is compared, ``(3P,)``; without statistics its ``._.elmo``.

    Args:
        ends: see `Reading`.
        compared: the rows of the Doc's tokens; None without statistics.
        obj: the object.

    Raises:
        NotOnDocError: the object's Doc is a part of the one that was read, or tokens were split.
    """
    if compared is None:
        return get_elmo(obj)
    doc, start, end = bounds(obj)
    return compared_vector(compared.rows[rows_of(doc, ends)][start:end])


def compared_rows(doc: Doc) -> np.ndarray | None:
    """The rows from which the vectors of a Doc's objects are computed, ``(n_tokens, 3P)``; None if
    the weights have no statistics.

    Raises:
        NotOnDocError: no component has read the Doc in this process, or its tokens were split.
    """
    reading = last_reading(doc)
    if reading is None or reading.vectors is None:
        raise NotOnDocError("This Doc has not been read: run the 'elmo' component on it.")
    compared = reading.compared
    return None if compared is None else compared.rows[rows_of(doc, reading.ends)]


def has_vector(obj: Doc | Span | Token) -> bool:
    """Return whether there is a vector that is not all zeros."""
    return bool(obj.vector.any())


def vector_norm(doc: Doc) -> float:
    """The vector's Euclidean length."""
    return norm(doc.vector)


def similarity(obj: Doc | Span | Token, other: Any) -> float:
    """Cosine of the vectors of two objects, 0 if one has no words; see `cosine`."""
    vectors = to_numpy(obj.vector), to_numpy(other.vector)
    return cosine(*vectors) if obj.text.strip() and other.text.strip() else 0.0


def remove(obj: Doc | Span | Token, value: Any) -> None:
    """``doc._.elmo = None``, or ``elmo_layers``, removes all that was read of a Doc, as spaCy's
    ``doc_cleaner`` does it; ``doc.tensor`` stays as it is.

    Raises:
        ValueError: another value, or no Doc.
    """
    if value is not None or not isinstance(obj, Doc):
        raise ValueError(
            "The elmo component writes '._.elmo' and '._.elmo_layers': they cannot be set, only "
            "removed from a Doc, doc._.elmo = None."
        )
    _readings.pop(obj, None)
    for key in (CHECKSUM, ENDS, LAYERS, VECTORS):
        obj.user_data.pop(key, None)


# At import, so that unpickled pipelines and Docs have them too.
for kind in (Doc, Span, Token):
    for name, getter in (("elmo", get_elmo), ("elmo_layers", get_layers)):
        if not kind.has_extension(name):  # a user's own stays
            kind.set_extension(name, getter=getter, setter=remove)
