"""From rows of text to vectors: what each process, Ray actor or Spark worker runs."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from thinc.api import to_numpy

from ..pipeline.component import Elmo, tokens_at_once
from ..pipeline.listener import ElmoListener
from ..pipeline.mixes import name_in
from ..pipeline.pipeline_parts import list_components, model_nodes
from ..pipeline.readings import ENDS, LAYERS, VECTORS, Reading, token_ends
from ..text.readers import StoredDocs, blank_pipeline
from ..text.segments import chunks, sentence_bounds
from ..text.split_text import memory_zone
from ..util.settings import Settings, one_of
from ..util.threads import threads
from ..weights.find import find_weights
from .block import Block
from .rows import Row, make_docs


@dataclass(frozen=True)
class Encoder(Settings):
    """Turns texts into vectors; loads its weights at first use, and pickles as its settings.

    Args:
        weights: see `find_weights`; tokenized as the card of the weights says.
        pipeline: directory or name of a spaCy pipeline with an elmo component, to use instead. Of
            its components, those before that one run too.
        component: a component of the pipeline: an elmo component (default: the last), or one with
            an `ElmoListener`, whose mix is used; of several, one by its name in `mixes`, such as
            ``"tagger.output_elmo"``.
        layers: ``"mix"``, ``"top"`` (the topmost) or ``"all"``.
        level: what vectors belong to: ``"tokens"``; ``"sentences"`` or ``"documents"``, the mean of
            their words.
        dtype: ``"float32"`` or ``"float16"``.
        lang: language of the text, if the card of the weights does not name it.
        docs: write Docs.
        precision, compiled: see `BiLM.set_precision`; None for ``"float32"``. A pipeline has its
            own.

    Raises:
        ValueError: a setting is unknown, or does not go with another.
    """

    title = "The encoder's setting"

    weights: str = "en_sm"
    pipeline: str | None = None
    component: str | None = None
    layers: str = one_of("mix", "top", "all")
    level: str = one_of("tokens", "sentences", "documents")
    dtype: str = one_of("float32", "float16")
    lang: str | None = None
    docs: bool = False
    precision: str | None = None
    compiled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pipeline is None and self.component is not None:
            raise ValueError(
                f"component = {self.component!r} is a component of a pipeline: give --pipeline too."
            )
        for name in ("weights", "lang", "precision", "compiled"):
            if self.pipeline is not None and getattr(self, name) != getattr(Encoder, name):
                raise ValueError(f"The pipeline has a setting {name} of its own: drop --{name}.")
        if self.docs and self.level != "tokens":
            raise ValueError(
                f"Docs store the vectors of tokens, not of {self.level}: choose another format, "
                f"or --level tokens."
            )

    def __reduce__(self) -> Any:
        return Encoder, astuple(self)

    @cached_property
    def nlp(self) -> Language:
        """The pipeline.

        Raises:
            ValueError: it or the weights cannot be loaded.
        """
        if self.pipeline is None:
            nlp = blank_pipeline(find_weights(self.weights), self.lang)
            precision = self.precision or "float32"
            model = {"weights": self.weights, "precision": precision, "compiled": self.compiled}
            nlp.add_pipe("elmo", config={"model": model})
        else:
            nlp = spacy.load(self.pipeline)
        nlp.max_length = 2**40  # nothing here grows with more than the text itself
        return nlp

    @cached_property
    def listener(self) -> Any:
        """The component's `ElmoListener`, whose mix is used; None if it has none.

        Raises:
            ValueError: it has several, and none of them is named; or none of that name.
        """
        pipes, component, part = dict(self.nlp.pipeline), self.component or "", ""
        if component not in pipes:
            component, _, part = component.rpartition(".")
        pipe: Any = pipes.get(component)
        found = {name_in(pipe.model, n.layers[0]): n for n in model_nodes(pipe, ElmoListener)}
        if found and part not in found and (part or len(found) > 1):
            names = " or ".join(f"'{component}.{name}'" for name in sorted(found))
            raise ValueError(
                f"component = {self.component!r} is not one mix of ELMo's layers: give {names}."
            )
        return found.get(part) or next(iter(found.values()), None)

    @cached_property
    def elmo(self) -> Elmo:
        """The elmo component.

        Raises:
            ValueError: there is none of that name.
        """
        found = {name: pipe for name, pipe in self.nlp.pipeline if isinstance(pipe, Elmo)}
        name = self.component or next(reversed(found), None)
        if self.listener is not None:
            name = self.listener.upstream
        elif name not in found:  # it may listen by spaCy's own listener
            name = next((each for each, pipe in found.items() if name in pipe.listener_map), name)
        if name not in found:
            raise ValueError(
                f"The pipeline '{self.pipeline}' has no "
                + (f"component {name!r} that is or listens to" if name else "component that is")
                + f" an elmo component. {list_components(self.nlp)}"
            )
        return found[name]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a vector: ``(2P,)``, or with all layers ``(L + 1, 2P)``."""
        config = self.elmo.bilm.config
        return (config.depth, config.width) if self.layers == "all" else (config.width,)

    def checksum(self) -> int:
        """Changes with the pipeline's config and tokenizer, and with all that the component, those
        before it or its listener save: the biLM, the state that sentences start from, the
        statistics and the mix."""
        pipes = [pipe for _, pipe in self.nlp.pipeline]
        before = [self.nlp.tokenizer, *pipes[: pipes.index(self.elmo) + 1]]
        saved = [each.to_bytes(exclude=["vocab"]) for each in before if hasattr(each, "to_bytes")]
        mix = b"" if self.listener is None else self.listener.layers[0].to_bytes()
        return zlib.crc32(b"".join([self.nlp.config.to_bytes(), *saved, mix]))

    def __call__(self, rows: Iterable[Row | None]) -> list[np.ndarray]:
        """The vectors of texts, or of lists of words: ``(n, *shape)`` for each.

        None, a null of Spark or pandas, is an empty text, as in Parquet.

        Raises:
            ValueError: one text instead of a list, or a number instead of a text.
        """
        if isinstance(rows, str):
            raise ValueError(f"Give a list of texts, as in [text]; found the text {rows[:50]!r}.")
        texts = ["" if row is None else row for row in rows]
        if numbers := [row for row in texts if isinstance(row, Number)]:
            raise ValueError(
                f"Give texts or lists of words; found the number {numbers[0]!r}. Where pandas has "
                f"nan for a text that is missing: texts.fillna('')."
            )
        return [vectors for _, _, vectors in self.encode(range(len(texts)), texts).rows()]

    @threads(1)
    def encode(
        self, ids: Sequence[Any], rows: Sequence[Row] | StoredDocs, id_type: str | None = None
    ) -> Block:
        """Encode some rows.

        They are encoded together, on one thread, and without what is left of rows before: the
        result is the same to the last bit, whichever process computes it.

        Args:
            ids, id_type: see `Block`.
            rows: texts, lists of words (one sentence each), or stored Docs.

        Raises:
            ValueError: the pipeline has a component that cannot read them, or the dtype is too
                small for the vectors.
        """
        self.elmo.bilm.model.word_cache.clear()
        self.elmo.store = ["layers"] if self.layers != "mix" or self.listener is not None else []
        texts: list[list[str]] = []
        vectors, stored = [np.empty((0, *self.shape), self.dtype)], DocBin(store_user_data=True)
        with memory_zone(self.nlp, None if isinstance(rows, StoredDocs) else rows):
            docs = self.read(rows)
            # Copies of what is needed; the layers of one batch are in memory at a time.
            for batch in chunks(docs, tokens_at_once(self.elmo.bilm), len(docs)):
                for doc, reading in zip(batch, self.elmo.predict(batch), strict=True):
                    some, array = self._pool(doc, self._select(reading))
                    with np.errstate(over="ignore"):
                        array = array.astype(self.dtype, copy=False)
                    if self.dtype == "float16" and not np.isfinite(array).all():
                        raise ValueError(
                            f"Some vectors are too large for dtype = {self.dtype!r}: use float32."
                        )
                    texts.append(some)
                    if self.docs:
                        self._store(doc, array)
                        stored.add(doc)
                    else:
                        vectors.append(array)
            data = stored.to_bytes() if self.docs else b""
        return Block(list(ids), texts, np.concatenate(vectors), data, id_type)

    def read(self, rows: Sequence[Row] | StoredDocs) -> list[Doc]:
        """Docs of rows, as the elmo component gets them in its pipeline."""
        names = self.nlp.pipe_names
        with self.nlp.select_pipes(disable=names[names.index(self.elmo.name) :]):
            return list(self.nlp.pipe(make_docs(self.nlp, rows)))

    def _select(self, reading: Reading) -> np.ndarray:
        """A copy of the vectors of a Doc, ``(n_tokens, *shape)``."""
        array: Any = reading.layers
        if self.layers == "all":
            return np.array(np.moveaxis(to_numpy(array), 0, 1))
        if self.layers == "top":
            array = array[-1]
        elif self.listener is None:
            array = reading.vectors
        else:
            [array] = self.listener.layers[0].predict([array])
        return np.array(to_numpy(array))

    def _pool(self, doc: Doc, vectors: np.ndarray) -> tuple[list[str], np.ndarray]:
        """Texts and their vectors: of tokens, or means of the words, as ``._.elmo`` has them."""
        if self.level == "tokens":
            return [token.text for token in doc], vectors
        words, bounds = sentence_bounds(doc, self.elmo.bilm.settings.segments)
        if self.level == "documents":
            mean = vectors[words].mean(axis=0) if len(words) else np.zeros(self.shape, "float32")
            return [doc.text], mean[None]
        texts = [doc[int(words[start]) : int(words[end - 1]) + 1].text for start, end in bounds]
        means = [vectors[words[start:end]].mean(axis=0) for start, end in bounds]
        return texts, np.array(means, dtype="float32").reshape(-1, *self.shape)

    def _store(self, doc: Doc, vectors: np.ndarray) -> None:
        """Put the vectors on a Doc: ``._.elmo``, or ``._.elmo_layers`` if these are all layers."""
        doc._.elmo = None  # of the component that has read the Doc of the corpus, if any
        doc.user_data[ENDS] = token_ends(doc)
        if self.layers == "all":
            doc.user_data[LAYERS] = np.ascontiguousarray(np.moveaxis(vectors, 0, 1))
        else:
            doc.user_data[VECTORS] = vectors
