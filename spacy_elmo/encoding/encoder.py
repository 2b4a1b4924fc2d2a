"""Turns rows of text into vectors; each process, Ray task or Spark worker runs this."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import to_numpy

from ..pipeline.component import Elmo
from ..text.readers import blank_pipeline
from ..text.segments import sentence_bounds
from ..util.settings import Settings, one_of
from ..util.threads import threads_for
from ..weights.find import find_weights, refuse_lists, to_config, warn_of_path
from .rows import EncodedRows, check_rows, make_docs

LOADING = RLock()  # so that threads load an encoder once


@dataclass(frozen=True)
class Encoder(Settings):
    """Turns texts into vectors. It loads its weights at first use, and pickles as its settings.

    Threads may share an encoder. Its vocab keeps each new word, as in any pipeline.

    Args:
        weights: see `find_weights`. The card of the weights decides how text is tokenized.
        pipeline: the directory or name of a spaCy pipeline to use instead: its last elmo component
            and the components before it.
        layers: ``"mix"`` (of the elmo component), ``"top"`` (the top layer) or ``"all"``.
        level: what has a vector: ``"tokens"``; ``"sentences"`` or ``"documents"``, the mean over
            their words.
        dtype: ``"float32"`` or ``"float16"``.
        lang: the language of the text; None for that of the weights. Another language has spaCy's
            default tokenizer.

    Raises:
        ValueError: a setting is unknown, or does not go with another.
    """

    title = "The encoder's setting"

    weights: str = "en_sm"
    pipeline: str | None = None
    layers: str = one_of("mix", "top", "all")
    level: str = one_of("tokens", "sentences", "documents")
    dtype: str = one_of("float32", "float16")
    lang: str | None = None

    def __post_init__(self) -> None:
        for name in ("weights", "pipeline"):
            if isinstance(path := getattr(self, name), Path):
                object.__setattr__(self, name, to_config(path))
        refuse_lists(self.weights)
        super().__post_init__()
        for name in ("weights", "lang"):
            if self.pipeline is not None and getattr(self, name) != getattr(Encoder, name):
                raise ValueError(f"The pipeline has a setting {name} of its own: drop --{name}.")

    def __reduce__(self) -> Any:
        return Encoder, astuple(self)

    @property
    def nlp(self) -> Language:
        """The pipeline, up to its last elmo component.

        Raises:
            ValueError: the pipeline or the weights cannot be loaded, or there is no elmo component.
        """
        with LOADING:
            return self._nlp

    @cached_property
    def _nlp(self) -> Language:
        if self.pipeline is None:
            nlp = blank_pipeline(find_weights(self.weights), self.lang)
            nlp.add_pipe("elmo", config={"model": {"weights": self.weights}})
        else:
            nlp = spacy.load(self.pipeline)
            if nlp.path is not None:
                warn_of_path(self.pipeline, nlp.path)
        names = ", ".join(nlp.pipe_names)
        while nlp.pipeline and not isinstance(nlp.pipeline[-1][1], Elmo):
            nlp.remove_pipe(nlp.pipe_names[-1])
        if not nlp.pipeline:
            raise ValueError(f"'{self.pipeline}' has no elmo component. It has: {names}.")
        component: Any = nlp.pipeline[-1][1]
        if self.layers != "mix":
            component.store = ["layers"]
        nlp.max_length = 2**40  # nothing here grows with more than the text itself
        return nlp

    @property
    def elmo(self) -> Elmo:
        """The elmo component, the last one of the pipeline; see `nlp`."""
        component: Any = self.nlp.pipeline[-1][1]
        return component

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a vector: ``(2P,)``, or with all layers ``(L + 1, 2P)``."""
        config = self.elmo.bilm.config
        return (config.depth, config.width) if self.layers == "all" else (config.width,)

    def checksum(self) -> int:
        """A checksum of the pipeline's files, or of the pipeline that the weights make."""
        nlp, checksum = self.nlp, 0
        if self.pipeline is None:  # otherwise some components' bytes differ between processes
            return zlib.crc32(nlp.to_bytes(exclude=["vocab"]))
        for file in sorted(filter(Path.is_file, Path(nlp.path).rglob("*"))):
            checksum = zlib.crc32(file.read_bytes(), checksum)
        return checksum

    def __call__(self, rows: Iterable[Any]) -> np.ndarray | list[np.ndarray]:
        """The vectors of texts or of lists of words, see `encode`.

        Returns:
            With ``level="documents"`` an array ``(n_rows, *shape)``, otherwise an array
            ``(n, *shape)`` for each row.

        Raises:
            ValueError: see `encode`.
        """
        encoded = self.encode(rows)
        if self.level == "documents":
            return encoded.vectors
        return [encoded.vectors[start:end] for start, end in pairwise(encoded.offsets)]

    @threads_for(0, most=1)
    def encode(self, rows: Iterable[Any]) -> EncodedRows:
        """Compute the vectors of rows, on one thread.

        Args:
            rows: a list, Series, 1-D array or generator of texts or of lists of words (a sentence
                each). A null of Python, NumPy, pandas or Arrow is an empty text.

        Raises:
            ValueError: the rows are something else; a component of the pipeline cannot read them;
                or the dtype is too small for the vectors.
        """
        checked = check_rows(rows)
        nlp = self.nlp
        texts: list[list[str]] = []
        vectors = [np.empty((0, *self.shape), self.dtype)]
        for doc in nlp.pipe(make_docs(nlp, checked)):
            parts, array = self._pool(doc, self._select(doc))
            with np.errstate(over="ignore"):
                array = array.astype(self.dtype, copy=False)
            if self.dtype == "float16" and not np.isfinite(array).all():
                raise ValueError(f"Vectors are too large for dtype = {self.dtype!r}: use float32.")
            texts.append(parts)
            vectors.append(array)
        return EncodedRows(texts, np.concatenate(vectors), self.level)

    def _select(self, doc: Doc) -> np.ndarray:
        """Copy the vectors of a Doc's tokens, ``(n_tokens, *shape)``, so that layers are freed."""
        if self.layers == "mix":
            array: Any = doc.tensor
        elif self.layers == "top":
            array = doc._.elmo_layers[-1]
        else:
            array = doc._.elmo_layers.swapaxes(0, 1)
        return np.array(to_numpy(array))

    def _pool(self, doc: Doc, vectors: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Texts with their vectors: tokens, or the means over their words, as in ``._.elmo``."""
        if self.level == "tokens":
            return [token.text for token in doc], vectors
        words, bounds = sentence_bounds(doc, self.elmo.bilm.settings.segments)
        if self.level == "documents":
            mean = vectors[words].mean(axis=0) if len(words) else np.zeros(self.shape, "float32")
            return [doc.text], mean[None]
        texts = [doc[int(words[start]) : int(words[end - 1]) + 1].text for start, end in bounds]
        means = [vectors[words[start:end]].mean(axis=0) for start, end in bounds]
        return texts, np.array(means, dtype="float32").reshape(-1, *self.shape)
