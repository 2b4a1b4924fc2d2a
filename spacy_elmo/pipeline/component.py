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

from ..bilm.characters import CharacterIds
from ..text.segments import DocPart, chunks
from ..util import files
from ..weights.find import WeightsNotFoundError
from ..weights.layout import DOCUMENTS
from .batch import Batch
from .bilm_layer import LazyBiLM
from .doc_output import ComparedRows, DocOutput, add_hooks, remember, store, token_ends
from .elmo_model import ELMO_MODEL, MIX, replace_config
from .listener import ElmoListener
from .mixes import model_nodes
from .scalar_mix import reset, set_up
from .source_stamp import SourceStamp, check_source, stamp_source
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

    Writes ``doc.tensor`` and the extensions ``._.elmo``. Other components can learn from it through
    `spacy-elmo.ElmoListener.v1` or `spacy.Tok2VecListener.v1`.

    Args:
        vocab: the pipeline's vocabulary.
        model: a `spacy-elmo.Elmo.v1` model.
        name: the component's name.
        store: extensions to write to each Doc, which ``doc.to_bytes()`` and
            ``DocBin(store_user_data=True)`` keep: ``"layers"`` for all layers, as
            ``doc._.elmo_layers``; ``"vectors"`` for ``._.elmo``.
        vectors: whether ELMo computes ``vector`` and ``similarity`` of Docs, Spans and Tokens:
            ``"elmo"`` (always), ``"vocab"`` (never), or ``"auto"``, if the vocab has no vectors.

    Raises:
        ValueError: the model is not `spacy-elmo.Elmo.v1`.

    Attributes:
        key: identifies the component's outputs of Docs; a random string, which copies and pickles
            keep.
        batch: the latest training batch.
        tokenizer: class of the pipeline's tokenizer; None once it was compared with the weights.
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
        self._needs_layers = False  # an ElmoListener is linked

    @property
    def bilm(self) -> LazyBiLM:
        """The biLM and its settings."""
        return self.model.get_ref("bilm").shims[0].bilm  # type: ignore[attr-defined]

    @property
    def mix(self) -> Any:
        """The mix that makes ``doc.tensor`` from the layers."""
        return self.model.get_ref("mix")

    def set_up(self) -> None:
        """Load the weights, and create the parameters of the mix."""
        config = self.bilm.model.config
        set_up(self.mix, config.depth, config.width)
        self.model.set_dim("nO", config.width, force=True)

    # Listeners

    @property
    def listener_map(self) -> dict[str, list[Any]]:
        """The listeners by component; spaCy assigns an empty dict before it links a pipeline."""
        return self._listener_map

    @listener_map.setter
    def listener_map(self, value: dict[str, list[Any]]) -> None:
        self._listener_map = value
        self.model.attrs["replace_listener_cfg"] = partial(replace_config, self.name)
        self._tensor_owner = self.name  # the last component so far that writes doc.tensor
        self._listener_conflict = ""

    def find_listeners(self, component: Any) -> None:
        """Link the listeners in another component's model that name this component.

        spaCy calls this for each component after this one, in order. Weights that cannot be found
        or read, or do not fit a setting, are reported when they are needed: a saved pipeline brings
        its own. A conflict is a warning here, because an error would leave a pipeline that is half
        changed; it is an error when the pipeline is used.

        Args:
            component: any component.
        """
        name = getattr(component, "name", "")
        for listener in model_nodes(component, Tok2VecListener):
            is_named = listener.upstream_name == self.name
            owns_tensor = self._tensor_owner == self.name
            if is_named or (listener.upstream_name == "*" and owns_tensor):
                self._link(listener, name)
            if listener.upstream_name != "*" and is_named != owns_tensor:
                self._warn_of_conflict(
                    f"A listener in '{name}' learns from '{listener.upstream_name}', but when it "
                    f"predicts it reads doc.tensor, which is that of '{self._tensor_owner}' by "
                    f"then. Put '{name}' before '{self._tensor_owner}', use "
                    f"spacy-elmo.ElmoListener.v1, or call nlp.replace_listeners before "
                    f"'{self._tensor_owner}' is added."
                )
        for elmo_listener in model_nodes(component, ElmoListener):
            if elmo_listener.upstream == self.name:
                self._link(elmo_listener, name)
                if isinstance(component, (EntityLinker, EntityLinker_v1)):
                    self._warn_of_conflict(
                        f"The component '{name}' listens by spacy-elmo.ElmoListener.v1, but it "
                        f"predicts from parts of Docs, which have no layers. Use "
                        f"spacy.Tok2VecListener.v1 there, with the width of '{self.name}'."
                    )
        if isinstance(component, Tok2Vec):
            self._tensor_owner = name

    def _warn_of_conflict(self, message: str) -> None:
        self._listener_conflict = message
        warnings.warn(message, stacklevel=3)

    def _link(self, listener: Any, component: str, overwrite: bool = False) -> None:
        source = self._source(listener)
        self.add_listener(listener, component)
        stamp_source(listener, source, overwrite)
        if isinstance(listener, ElmoListener):
            listener.link(self.key, component, source)
            self._needs_layers = True

    def remove_listener(self, listener: Any, component_name: str) -> bool:
        """Unlink a listener; spaCy calls this while it iterates over the component's list."""
        if component_name in self.listener_map:
            self.listener_map[component_name] = list(self.listener_map[component_name])
        return super().remove_listener(listener, component_name)

    def _source(self, listener: Model) -> SourceStamp:
        """What a listener learns from: the biLM, and for spaCy's listeners the mix."""
        return SourceStamp(self.bilm, self.mix if isinstance(listener, Tok2VecListener) else None)

    def check_listener(self, listener: Any, component: str) -> None:
        """Raise a ValueError if a listener has another width than the vectors, or has learned from
        another biLM than the one that is loaded.

        Args:
            listener: an `ElmoListener`, or one of spaCy's.
            component: name of the listener's component.
        """
        width = self.bilm.config.width
        if isinstance(listener, Tok2VecListener) and listener.get_dim("nO") != width:
            raise ValueError(
                f"The listener in '{component}' has width = {listener.get_dim('nO')}, but the "
                f"vectors of '{self.name}' have {width} dimensions. Set it to {width}, or enable "
                f"the component that it should listen to, and name that as its 'upstream'."
            )
        check_source(listener, self._source(listener), component, self.name)

    def _check_listeners(self, kind: type) -> None:
        """Check the listeners of a class. (Each `ElmoListener` checks itself when it predicts.)"""
        if self._listener_conflict:
            raise ValueError(self._listener_conflict)
        for component, listeners in self._listener_map.items():
            for listener in listeners:
                if isinstance(listener, kind):
                    self.check_listener(listener, component)

    # Prediction

    def predict(self, docs: Iterable[Doc]) -> list[DocOutput]:
        """Compute the vectors of Docs, and what else `set_annotations` needs. The Docs stay as they
        are.

        Raises:
            ValueError: the weights are missing or damaged, or a component after this one would
                read other vectors than it learned from, or has learned from another biLM.
        """
        docs, bilm, outputs = list(docs), self.bilm, list[DocOutput]()
        if not any(map(len, docs)):  # this needs no weights, which may be missing
            return [self._allocate(part, bilm) for part in bilm.split(docs)]
        n_tokens = bilm.tokens_at_once
        with np.errstate(under="ignore"):  # not a decorator: in NumPy 1 threads share its state
            # Few layers are in memory at a time, of long Docs those of a part.
            for parts in chunks(bilm.split(docs, n_tokens), n_tokens, n_tokens):
                layers: list[Any] = self.model.get_ref("bilm").predict(parts)
                for part, x, vectors in zip(parts, layers, self.mix.predict(layers), strict=True):
                    if part.start == 0:
                        outputs.append(self._allocate(part, bilm))
                    outputs[-1].fill(part, x, vectors)
        self._check_listeners(Tok2VecListener)
        self._warn_of_weights()
        return outputs

    def _allocate(self, part: DocPart, bilm: LazyBiLM) -> DocOutput:
        """An output with arrays of zeros for a whole Doc, given the first part of the Doc."""
        depth, width, statistics = 1, bilm.settings.width or 0, None
        with contextlib.suppress(WeightsNotFoundError):  # an empty Doc needs none
            depth, width, statistics = bilm.config.depth, bilm.config.width, bilm.statistics
        alloc, n_tokens = self.model.ops.alloc, len(part.doc)
        keeps_layers = self._needs_layers or "layers" in self.store
        compared = None
        if statistics is not None:
            compared = ComparedRows(statistics, part, CharacterIds.of(bilm.config).read)
        return DocOutput(
            token_ends(part.doc),
            vectors=alloc((n_tokens, width)),
            layers=alloc((depth, n_tokens, width)) if keeps_layers else None,
            compared=compared,
            bilm=ref(bilm),
        )

    def _warn_of_weights(self) -> None:
        """Warn once if the weights were trained on another language, or with another tokenizer."""
        if self.tokenizer is not None and self.bilm.is_loaded:
            bilm = self.bilm
            warn_of_weights(bilm.card, bilm.settings.weights, self.vocab.lang, self.tokenizer)
            self.tokenizer = None

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of Docs, in batches of some passes of the biLM.

        Args:
            stream: any number of Docs.
            batch_size: the largest number of Docs in a batch.
        """
        n_tokens = 1
        with contextlib.suppress(WeightsNotFoundError):  # the first Doc with words reports it
            n_tokens = self.bilm.tokens_at_once
        for docs in chunks(stream, n_tokens, batch_size):
            yield from super().pipe(docs, batch_size=batch_size)

    def set_annotations(self, docs: Sequence[Doc], outputs: Sequence[DocOutput]) -> None:
        """Write the vectors to ``doc.tensor``, remember the outputs, and set hooks and
        extensions."""
        has_vectors = self.vectors == "auto" and bool(self.vocab.vectors.size)
        for doc, output in zip(docs, outputs, strict=True):
            # On a GPU spaCy merges the rows of a tensor in place.
            on_gpu = not isinstance(output.vectors, np.ndarray)
            doc.tensor = output.vectors.copy() if on_gpu else output.vectors
            remember(doc, self.key, output)
            store(doc, output, self.store)
            if self.vectors != "vocab" and not has_vectors:
                add_hooks(doc, output)

    # Training

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Run the biLM over a batch, from which the listeners then learn.

        The listeners' gradients are summed. `finish_update` backpropagates the sum; if gradients
        are accumulated over several batches, the next `update` does.

        Args:
            examples: the batch.
            drop: not used; dropout is a setting of each mix.
            sgd: an optimizer, for a step by the gradients of the batch before.
            losses: the squared gradients of the listeners are added under the component's name.

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
        self._warn_of_weights()
        self._check_listeners(Model)
        for listener in self.listeners:
            stamp_source(listener, self._source(listener))
        tok2vec_listeners = [node for node in self.listeners if isinstance(node, Tok2VecListener)]
        is_frozen = self.bilm.settings.frozen
        self.batch = Batch(layers, None if is_frozen else backprop, losses, self.name)
        for i, (doc, x) in enumerate(zip(docs, layers, strict=True)):
            output = DocOutput(token_ends(doc), layers=x, bilm=ref(self.bilm))
            output.batch = ref(self.batch), i
            remember(doc, self.key, output)
        self.batch.send(docs, tok2vec_listeners, self.mix)
        if sgd:
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Backpropagate the listeners' gradients, and update the parameters."""
        if self.batch.has_gradients:  # `nlp.update` calls this before the listeners learn
            self.batch.finish()
        super().finish_update(sgd)

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None
    ) -> None:
        """Load the weights and set up the mix. What both have learned is reset, except

        - if a component that listens is not initialized too: it has learned from them;
        - that of a biLM which came with a saved component.

        Args:
            get_examples: returns a sample of the training data.
            nlp: the pipeline. Its meta gets the sources of the weights, and their licence if it has
                none.

        Raises:
            ValueError: the weights are missing or damaged, or do not fit a setting; a component
                after this one would read other vectors than it learns from, or has learned from
                another biLM; or an ``entity_linker`` lacks the width of its vectors.
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
        for component in initialized & {*self.listener_map}:  # these forget what they learned, too
            for listener in self.listener_map[component]:
                self._link(listener, component, overwrite=True)
        self._check_listeners(Model)
        if nlp is not None:
            for name, pipe in nlp.pipeline:
                check_linker(pipe, name)
            known = nlp.meta.get("sources") or []
            new = [it for it in self.bilm.card.meta.get("sources", []) if it not in known]
            nlp.meta["sources"] = [*known, *new]
            nlp.meta["license"] = nlp.meta["license"] or self.bilm.card.meta.get("license", "")
        self.model.initialize()  # without a sample, whose Docs may lack sentence boundaries

    # Files

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the component with its weights, and their card and licence beside it."""
        if "model" not in exclude:
            self.set_up()
        super().to_disk(path, exclude=exclude)
        for name in DOCUMENTS if "model" not in exclude else ():
            (Path(path) / name).unlink(missing_ok=True)  # other weights may have left one
            if text := self.bilm.card.documents.get(name):
                (Path(path) / name).write_text(text, encoding="utf-8")

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialize the component with its weights."""
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
        """Load a model inside a ``with`` block, and raise a ValueError if it is damaged. thinc does
        not notice missing parts: it keeps those that are there."""
        others = TypeError, IndexError, AttributeError  # thinc's errors for other data
        with files.naming_errors(f"the component '{self.name}' from", source, *others):
            bilm, mix = self.bilm, self.mix
            self.model.set_dim("nO", None, force=True)  # type: ignore[arg-type]  # compared below
            yield
            if "model" not in exclude:
                if self.bilm is bilm or self.mix is not mix:
                    raise ValueError("a part of its model is missing")
                self.set_up()


def check_linker(component: Any, name: str) -> None:
    """Raise a ValueError if an `entity_linker` was made without the width of its token vectors: it
    would use the length of its knowledge base's vectors instead."""
    if isinstance(component, (EntityLinker, EntityLinker_v1)):
        output = component.model.maybe_get_ref("output_layer")
        if output is not None and output.has_dim("nI") is None:
            raise ValueError(
                f"The component '{name}' does not know the width of its token vectors. Set 'width' "
                f"in its spacy-elmo.Elmo.v1, or 'encode' in its spacy-elmo.Tok2Vec.v1."
            )
