"""The pipeline component ``elmo``: runs a biLM over Docs and writes contextual vectors to them."""

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4
from weakref import ref

import numpy as np
from spacy.language import Language
from spacy.pipeline.entity_linker import EntityLinker
from spacy.pipeline.legacy import EntityLinker_v1
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d

from ..text.segments import DocPart, chunks, doc_parts
from ..util import files
from ..weights.find import WeightsNotFoundError
from ..weights.layout import DOCUMENTS
from .batch import Batch
from .bilm_layer import LazyBiLM
from .elmo_model import ELMO_MODEL, MIX, replace_config
from .listener import ElmoListener, LearnedFrom, check_source, learn_from
from .mixes import model_nodes
from .readings import ComparedRows, Reading, add_hooks, note_reading, store, token_ends
from .scalar_mix import reset, set_up
from .warn import warn_of_weights

MODEL = {"@architectures": ELMO_MODEL, "mix": {"@architectures": MIX}}


@Language.factory(
    "elmo",
    assigns=["doc.tensor", "doc._.elmo", "span._.elmo", "token._.elmo"],
    default_config={"store": [], "vectors": "auto", "model": MODEL},
)
def make_elmo(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Floats2d]],
    store: list[Literal["layers", "vectors"]],
    vectors: Literal["auto", "elmo", "vocab"],
) -> "Elmo":
    """Construct an elmo component; no file is opened."""
    elmo = Elmo(nlp.vocab, model, name, store=store, vectors=vectors)
    elmo.tokenizer = type(nlp.tokenizer)
    return elmo


class Elmo(Tok2Vec):
    """Gives each token a vector that depends on its sentence (Peters et al. 2018).

    Writes ``doc.tensor`` and the extensions ``._.elmo``; other components can learn from it
    through `spacy-elmo.ElmoListener.v1` or `spacy.Tok2VecListener.v1`.

    Args:
        vocab: the pipeline's vocabulary.
        model: a `spacy-elmo.Elmo.v1` model.
        name: the component's name.
        store: what is stored on each Doc as an extension that survives bytes and a `DocBin`:
            ``"layers"``, all of them, as ``doc._.elmo_layers``; ``"vectors"``, for ``._.elmo``.
        vectors: whether ``vector`` and ``similarity`` of Docs, Spans and Tokens come from ELMo:
            ``"elmo"``, ``"vocab"`` (never), or ``"auto"``, if the vocab has no vectors.

    Raises:
        ValueError: the model is not `spacy-elmo.Elmo.v1`.

    Attributes:
        key: of what it has read of Docs; a random string, which copies and pickles keep.
        batch: the batch that it was updated with last.
        tokenizer: class of the pipeline's; None once it was compared with that of the weights.
    """

    hide_labels = True  # there are none, and nlp.meta should not list them

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], list[Floats2d]],
        name: str = "elmo",
        *,
        store: Sequence[str] = (),
        vectors: str = "auto",
    ):
        if not {"bilm", "mix"} <= set(model.ref_names):
            raise ValueError(f"An elmo component's model is spacy-elmo.Elmo.v1, not {model.name}.")
        super().__init__(vocab, model, name)
        self.key, self.batch = uuid4().hex, Batch()
        self.tokenizer: type | None = None
        self.store, self.vectors = list(store), vectors
        self._has_own_listeners = False  # whose layers are kept

    @property
    def bilm(self) -> LazyBiLM:
        """The biLM with its settings."""
        return self.model.get_ref("bilm").shims[0].bilm  # type: ignore[attr-defined]

    @property
    def mix(self) -> Any:
        """The mix of the layers in ``doc.tensor``."""
        return self.model.get_ref("mix")

    def set_up(self) -> None:
        """Load the weights, and give the mix its parameters."""
        config = self.bilm.model.config
        set_up(self.mix, config.depth, config.width)
        self.model.set_dim("nO", config.width, force=True)

    # Listeners

    @property
    def listener_map(self) -> dict[str, list[Any]]:
        """The listeners of each component; spaCy empties it when it begins to link a pipeline."""
        return self._listener_map

    @listener_map.setter
    def listener_map(self, value: dict[str, list[Any]]) -> None:
        self._listener_map = value
        self.model.attrs["replace_listener_cfg"] = partial(replace_config, self.name)
        self._writer, self._conflict = self.name, ""  # of doc.tensor, the last one so far

    @property
    def tok2vec_listeners(self) -> list[Tok2VecListener]:
        """spaCy's listeners, which get ``doc.tensor`` and share the component's mix."""
        return [listener for listener in self.listeners if isinstance(listener, Tok2VecListener)]

    def find_listeners(self, component: Any) -> None:
        """Link the listeners in a component's model that name this one; spaCy calls this for each
        component behind it, in order.

        An `ElmoListener` gets the shape of the layers here, from the config of the weights alone.
        Weights that cannot be found or read, or do not fit a setting, are reported when they are
        needed: a saved pipeline contains its own. A listener of spaCy's that would read another
        component's ``doc.tensor``, and one of ours where it finds no layers, are warned of: an
        error would leave a pipeline that is half changed.
        """
        name = getattr(component, "name", "")
        for listener in model_nodes(component, Tok2VecListener):
            is_named, is_writer = listener.upstream_name == self.name, self._writer == self.name
            if is_named or (listener.upstream_name == "*" and is_writer):
                self._link(listener, name)
            if listener.upstream_name != "*" and is_named != is_writer:
                self._conflict = (
                    f"A listener in '{name}' learns from '{listener.upstream_name}', but when it "
                    f"predicts it reads doc.tensor, which is that of '{self._writer}' by then. Put "
                    f"'{name}' before '{self._writer}', use spacy-elmo.ElmoListener.v1, or call "
                    f"nlp.replace_listeners before '{self._writer}' is added."
                )
                warnings.warn(self._conflict, stacklevel=2)
        for own in model_nodes(component, ElmoListener):
            if own.upstream == self.name:
                self._link(own, name)
                if isinstance(component, (EntityLinker, EntityLinker_v1)):
                    self._conflict = (
                        f"The component '{name}' listens by spacy-elmo.ElmoListener.v1, but it "
                        f"predicts from parts of Docs, which have no layers. Use "
                        f"spacy.Tok2VecListener.v1 there, with the width of '{self.name}'."
                    )
                    warnings.warn(self._conflict, stacklevel=2)
        if isinstance(component, Tok2Vec):
            self._writer = name

    def _link(self, listener: Any, component: str, anew: bool = False) -> None:
        source = self._source(listener)
        self.add_listener(listener, component)
        learn_from(listener, source, anew)
        if isinstance(listener, ElmoListener):
            listener.link(self.key, component, source)
            self._has_own_listeners = True
            with contextlib.suppress(ValueError):
                listener.set_shape(self.bilm.config.depth, self.bilm.config.width)

    def remove_listener(self, listener: Any, component_name: str) -> bool:
        """Unlink a listener; spaCy calls this while it goes over the component's list of them."""
        if component_name in self.listener_map:
            self.listener_map[component_name] = list(self.listener_map[component_name])
        return super().remove_listener(listener, component_name)

    def _source(self, listener: Model) -> LearnedFrom:
        """What a listener learns from: one of spaCy's from the component's mix, too."""
        return LearnedFrom(self.bilm, self.mix if isinstance(listener, Tok2VecListener) else None)

    def check_listener(self, listener: Any, component: str) -> None:
        """Raise a ValueError if a listener does not fit the vectors, or the biLM if it is loaded.

        Args:
            listener: of either kind.
            component: name of its component.
        """
        width = self.bilm.config.width
        if isinstance(listener, Tok2VecListener) and listener.get_dim("nO") != width:
            raise ValueError(
                f"The listener in '{component}' has width = {listener.get_dim('nO')}, but the "
                f"vectors of '{self.name}' have {width} dimensions. Set it to {width}, or its "
                f"upstream = '{listener.upstream_name}' to the component it should listen to."
            )
        check_source(listener, self._source(listener), component, self.name)

    def _check_listeners(self, kind: type) -> None:
        """Check the listeners of a class; when it predicts, ours check what they read."""
        if self._conflict:
            raise ValueError(self._conflict)
        for component, listeners in self._listener_map.items():
            for listener in listeners:
                if isinstance(listener, kind):
                    self.check_listener(listener, component)

    # Reading Docs

    def predict(self, docs: Iterable[Doc]) -> list[Reading]:
        """Read Docs, which are not changed.

        Args:
            docs: the Docs. Their layers are all in memory only if they are stored or listened to.

        Returns:
            A `Reading` of each.

        Raises:
            ValueError: the weights are missing or damaged, or a component behind this one would
                read other vectors than it learned from, or has learned from another biLM.
        """
        docs = list(docs)
        if not any(map(len, docs)):  # no weights are needed for that, nor have to be there
            return [self._new_reading(part) for doc in docs for part in doc_parts(doc, "doc", 1, 1)]
        with np.errstate(under="ignore"):  # not a decorator: in NumPy 1 threads share its state
            readings = self._read(docs)
        self._check_listeners(Tok2VecListener)
        self._check_words()
        return readings

    def _read(self, docs: Sequence[Doc]) -> list[Reading]:
        settings, n_tokens = self.bilm.settings, self.bilm.tokens_at_once
        given = settings.segments, settings.max_words, n_tokens
        parts = (part for doc in docs for part in doc_parts(doc, *given))
        readings: list[Reading] = []
        for group in chunks(parts, n_tokens, n_tokens):  # of long Docs: few layers are in memory
            layers: list[Any] = self.model.get_ref("bilm").predict(group)
            for part, own, vectors in zip(group, layers, self.mix.predict(layers), strict=True):
                if part.start == 0:
                    readings.append(self._new_reading(part))
                readings[-1].take(part, own, vectors)
        return readings

    def _check_words(self) -> None:
        """Warn, once, of weights of another language or tokenizer."""
        if self.tokenizer is not None and self.bilm.is_loaded:
            bilm = self.bilm
            warn_of_weights(bilm.card, bilm.settings.weights, self.vocab.lang, self.tokenizer)
            self.tokenizer = None

    def _new_reading(self, part: DocPart) -> Reading:
        """The reading of a Doc, given its first part; its arrays are zeros."""
        bilm, depth, width = self.bilm, 1, self.bilm.settings.width or 0
        with contextlib.suppress(WeightsNotFoundError):  # nobody misses them for an empty Doc
            depth, width = bilm.config.depth, bilm.config.width
        alloc, n_tokens = self.model.ops.alloc, len(part.doc)
        statistics = bilm.statistics  # none before the biLM is loaded
        read = bilm.model.char_cnn.to_ids.read if statistics else list
        keeps_layers = self._has_own_listeners or "layers" in self.store
        return Reading(
            token_ends(part.doc),
            vectors=alloc((n_tokens, width)),
            layers=alloc((depth, n_tokens, width)) if keeps_layers else None,
            compared=None if statistics is None else ComparedRows(statistics, part, read),
            bilm=ref(bilm),
        )

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of Docs, as many at a time as some passes of the biLM read.

        Args:
            stream: any number of Docs.
            batch_size: the most Docs at a time.
        """
        handle, n_tokens = self.get_error_handler(), 1
        with contextlib.suppress(WeightsNotFoundError):  # the first Doc with words reports it
            n_tokens = self.bilm.tokens_at_once
        for docs in chunks(stream, n_tokens, batch_size):
            try:
                self.set_annotations(docs, self.predict(docs))
            except Exception as error:
                handle(self.name, self, docs, error)
            else:
                yield from docs

    def set_annotations(self, docs: Sequence[Doc], readings: Sequence[Reading]) -> None:
        """Write what `predict` has read to Docs: vectors, and what is stored or compared."""
        has_vectors = self.vectors == "auto" and bool(self.vocab.vectors.size)
        for doc, reading in zip(docs, readings, strict=True):
            # On a GPU spaCy merges the rows of a tensor in place.
            on_gpu = not isinstance(reading.vectors, np.ndarray)
            doc.tensor = reading.vectors.copy() if on_gpu else reading.vectors
            note_reading(doc, self.key, reading)
            store(doc, reading, self.store)
            if self.vectors != "vocab" and not has_vectors:
                add_hooks(doc, reading)

    # Learning

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Run the biLM over a batch for the listeners, which add up their gradients.

        They are backpropagated in `finish_update`, or with the next batch if gradients are
        accumulated over several. So it does not matter which listeners learn from a batch.

        Args:
            examples: the batch.
            drop: not used; dropout is a setting of each mix.
            sgd: an optimizer, for a step by the gradients of the batch before.
            losses: gets the squared gradients of the listeners under the component's name.

        Returns:
            ``losses``.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "Elmo.update")
        self.batch.finish()
        docs = [example.predicted for example in examples]
        layers, backprop = self.model.get_ref("bilm").begin_update(docs)
        self._check_words()
        self._check_listeners(Model)
        for listener in self.listeners:
            learn_from(listener, self._source(listener))
        is_frozen = self.bilm.settings.frozen
        self.batch = Batch(layers, None if is_frozen else backprop, losses, self.name)
        for i, (doc, own) in enumerate(zip(docs, layers, strict=True)):
            reading = Reading(token_ends(doc), layers=own, bilm=ref(self.bilm))
            reading.batch = ref(self.batch), i
            note_reading(doc, self.key, reading)
        self.batch.send(docs, self.tok2vec_listeners, self.mix)
        if sgd:
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Make a step by the gradients of all batches since the last one."""
        if self.batch.has_gradients:  # `nlp.update` calls this before the listeners learn
            self.batch.finish()
        super().finish_update(sgd)

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None
    ) -> None:
        """Load the weights and set up the mix. What has been learned before is forgotten.

        But it stays if a component listens that is not initialized, and has learned from it. A
        biLM that was loaded with a saved component stays, too.

        Args:
            get_examples: returns a sample of the training data.
            nlp: the pipeline, whose meta gets the sources of the weights, and if it has no licence,
                theirs.

        Raises:
            ValueError: the weights are missing or damaged, or do not fit a setting; a component
                behind this one would read other vectors than it learns from, or has learned from
                another biLM; or see `check_linker`.
        """
        validate_get_examples(get_examples, "Elmo.initialize")
        self.batch.close()
        if nlp is not None:  # spaCy links no disabled components, such as frozen ones in a training
            # A pipeline that sourced it may have given it another name.
            place = [pipe for _, pipe in nlp.components].index(self)
            self.name = nlp.component_names[place]
            self.listener_map = {}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a conflict is an error below
                for _, pipe in nlp.components[place + 1 :]:
                    self.find_listeners(pipe)
        initialized = {*self.listener_map} if nlp is None else {*nlp.pipe_names}
        if {*self.listener_map} <= initialized:
            self.model.get_ref("bilm").shims[0].reset()  # type: ignore[attr-defined]
            reset(self.mix)
        self.set_up()
        for component in initialized & {*self.listener_map}:  # they begin anew, too
            for listener in self.listener_map[component]:
                self._link(listener, component, anew=True)
        self._check_listeners(Model)
        if nlp is not None:
            for name, pipe in nlp.pipeline:
                check_linker(pipe, name)
            known = nlp.meta.get("sources") or []
            new = [each for each in self.bilm.card.meta.get("sources", []) if each not in known]
            nlp.meta["sources"] = [*known, *new]
            nlp.meta["license"] = nlp.meta["license"] or self.bilm.card.meta.get("license", "")
        self.model.initialize()  # not by a sample: its Docs may lack the sentences to read

    # Files

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the component, its weights included, and their card and licence beside it."""
        if "model" not in exclude:
            self.set_up()
        super().to_disk(path, exclude=exclude)
        for name in DOCUMENTS if "model" not in exclude else ():
            (Path(path) / name).unlink(missing_ok=True)  # of other weights that were saved here
            if text := self.bilm.card.documents.get(name):
                (Path(path) / name).write_text(text, encoding="utf-8")

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The component, its weights included."""
        if "model" not in exclude:
            self.set_up()
        return super().to_bytes(exclude=exclude)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "Elmo":
        """Load the component with its weights; a ValueError if a file is missing or damaged."""
        with self._loading(str(path), exclude):
            super().from_disk(path, exclude=exclude)
        return self

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "Elmo":
        """Load the component with its weights; a ValueError if the bytes are damaged."""
        with self._loading("bytes", exclude):
            super().from_bytes(bytes_data, exclude=exclude)
        return self

    @contextlib.contextmanager
    def _loading(self, source: str, exclude: Iterable[str]) -> Iterator[None]:
        """Report what thinc does not notice, too: it leaves the parts as they are that the data
        lack."""
        others = TypeError, IndexError, AttributeError  # thinc's, of what is no model
        with files.reading(f"the component '{self.name}' from", source, *others):
            bilm, mix = self.bilm, self.mix
            self.model.set_dim("nO", None, force=True)  # type: ignore[arg-type]  # compared below
            yield
            if "model" not in exclude:
                if self.bilm is bilm or self.mix is not mix:
                    raise ValueError("a part of its model is missing")
                self.set_up()


def check_linker(component: Any, name: str) -> None:
    """Raise a ValueError if an `entity_linker` was made without the width of its token vectors: it
    would take the length of its knowledge base's vectors for that."""
    if isinstance(component, (EntityLinker, EntityLinker_v1)):
        output = component.model.maybe_get_ref("output_layer")
        if output is not None and output.has_dim("nI") is None:
            raise ValueError(
                f"The component '{name}' does not know the width of its token vectors. Set 'width' "
                f"in its spacy-elmo.Elmo.v1, or 'encode' in its spacy-elmo.Tok2Vec.v1."
            )
