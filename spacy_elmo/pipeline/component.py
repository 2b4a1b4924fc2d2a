"""The pipeline component: runs a biLM over Docs and writes contextual vectors to them."""

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Dict, List, Optional, Union  # noqa: UP035
from weakref import ref

import srsly
from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d

from ..bilm.torch_precision import rounding
from ..text.readers import BY_RULES
from ..text.segments import chunks
from ..util.settings import check_choice
from ..util.threads import results_ahead, steady_threads
from ..weights.find import WeightsNotFoundError
from ..weights.layout import DOCUMENTS, META, Card
from . import extensions
from .bilm_layer import BiLMShim
from .doc_layers import DocLayers
from .elmo_model import ReplacedConfig
from .errors import damage_reported, warn_of_tokenizer
from .gradients import BatchGradients
from .learned_from import begin_to_learn, check_tensor_listeners, take_along
from .listener import ElmoListener
from .pipeline_parts import model_nodes
from .predictions import Output, predict_docs, tokens_at_once
from .scalar_mix import begin_anew, check_parameters, set_up
from .similarity import add_hooks
from .stored_vectors import get_owners, set_vectors
from .tensor_listeners import TensorListeners

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP007, UP045

MOST_THREADS = 8  # more would read few sentences each


class Elmo(Tok2Vec):
    """Gives each token a vector that depends on its sentence (Peters et al. 2018).

    Writes ``doc.tensor`` and the extensions ``._.elmo``; other components can learn from it
    through `spacy-elmo.ElmoListener.v1` or `spacy.Tok2VecListener.v1`.

    Args:
        vocab: the pipeline's vocabulary.
        model: a `spacy-elmo.Elmo.v1` model.
        name: the component's name.
        store_layers: store all layers on each Doc, as ``doc._.elmo_layers``.
        vectors: whether ``vector`` and ``similarity`` of Docs, Spans and Tokens come from ELMo:
            ``"elmo"``, ``"vocab"`` (never), or ``"auto"``, if the vocab has no vectors.

    Raises:
        ValueError: a setting is unknown, or the model is not `spacy-elmo.Elmo.v1`.

    Attributes:
        doc_layers: shared with its `ElmoListener`s; knows the pipeline.
        tensor_listeners: finds listeners that would read the wrong ``doc.tensor``.
    """

    hide_labels = True  # there are none, and nlp.meta should not list them
    _tokenizer_is_checked = False

    def __init__(
        self,
        vocab: Vocab,
        model: Model[List[Doc], List[Floats2d]],
        name: str = "elmo",
        *,
        store_layers: bool = False,
        vectors: str = "auto",
    ):
        check_choice("The elmo component's setting vectors", vectors, ("auto", "elmo", "vocab"))
        if not {"bilm", "mix"} <= set(model.ref_names):
            raise ValueError(
                f"The elmo component's model must be the architecture spacy-elmo.Elmo.v1, found "
                f"'{model.name}'."
            )
        super().__init__(vocab, model, name)
        model.attrs["replace_listener_cfg"] = ReplacedConfig(name)
        self.store_layers = store_layers
        self.vectors = vectors
        self.doc_layers = DocLayers(name)
        self.doc_layers.describe(name, self.shim)
        self.tensor_listeners = TensorListeners()
        self._card: Optional[Card] = None  # whose sources the pipeline has

    @property
    def shim(self) -> BiLMShim:
        """The model's shim, which loads and runs the biLM."""
        return self.model.get_ref("bilm").shims[0]  # type: ignore[return-value]

    @property
    def tok2vec_listeners(self) -> List[Tok2VecListener]:
        """spaCy's listeners, which get ``doc.tensor`` and share the component's mix."""
        return [listener for listener in self.listeners if isinstance(listener, Tok2VecListener)]

    # Listeners

    def find_listeners(self, component: Any) -> None:
        """Link the listeners in a component's model that name this one; spaCy calls this.

        An `ElmoListener` gets the shape of the layers here, from the config of the weights alone.
        Weights that cannot be found are reported when they are needed: a saved pipeline contains
        its own.

        Raises:
            ValueError: the weights do not fit a setting, or their config is damaged.
        """
        self.doc_layers.describe(self.name, self.shim)
        self.model.attrs["replace_listener_cfg"].component = self.name  # it may have another now
        self.tensor_listeners.start(self)
        is_last = len(self.tensor_listeners.linked.writers) == 1
        for listener in model_nodes(component, Tok2VecListener):
            if listener.upstream_name == self.name or (is_last and listener.upstream_name == "*"):
                self.add_listener(listener, component.name)
        for own in model_nodes(component, ElmoListener):
            own.follow(self.doc_layers)
            if own.upstream == self.name:
                self.add_listener(own, component.name)  # type: ignore[arg-type]
                with contextlib.suppress(WeightsNotFoundError):
                    own.set_shape(self.shim.config.depth, self.shim.config.width)
        self.tensor_listeners.link(component, self.doc_layers.nlp())

    def remove_listener(self, listener: Any, component_name: str) -> bool:
        """Unlink a listener; spaCy calls this while it goes over the component's list of them."""
        if component_name in self.listener_map:
            self.listener_map[component_name] = list(self.listener_map[component_name])
        if isinstance(listener, ElmoListener):
            listener.unlink(self.doc_layers)
        return super().remove_listener(listener, component_name)

    # Reading Docs

    def predict(self, docs: Iterable[Doc]) -> List[Output]:
        """Vectors of Docs, which are not changed.

        Args:
            docs: the Docs. Their layers are all in memory only if they are stored or listened to.

        Returns:
            An `Output` for each.

        Raises:
            ValueError: the weights are missing or damaged, or a component behind this one would
                read other vectors than it learned from, or has learned from another biLM.
        """
        docs = list(docs)
        if docs:
            self.tensor_listeners.check(self, docs[0].vocab)
        with_layers = self.store_layers or bool(self.doc_layers.listeners)
        outputs = predict_docs(docs, self.model, with_layers)
        if outputs and self.model.has_dim("nO") is None:
            self.model.set_dim("nO", outputs[0].tensor.shape[1])
        check_tensor_listeners(self)
        self._check_tokenizer()
        self._add_sources()
        return outputs

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of Docs, as many at a time as some passes of the biLM read.

        Where there are processors for it, threads read the next Docs while these are used.

        Args:
            stream: any number of Docs.
            batch_size: the most Docs at a time.
        """
        handle, shim = self.get_error_handler(), self.shim
        # A cache and autocast are of one thread; a stream of single Docs may wait for each.
        is_alone = shim.cache.is_on or rounding(shim.device)[0] is not None or batch_size == 1
        is_alone = is_alone or shim.config.has_large_layers or shim.device.type != "cpu"
        n_threads = 1 if is_alone else min(MOST_THREADS, steady_threads(shim.settings.threads))
        batches = chunks(stream, tokens_at_once(shim) / n_threads, batch_size)
        for docs, predict in results_ahead(self.predict, batches, n_threads):
            try:
                self.set_annotations(docs, predict())
            except Exception as error:
                handle(self.name, self, docs, error)
            else:
                yield from docs

    def set_annotations(self, docs: Sequence[Doc], outputs: Sequence[Output]) -> None:
        """Write the outputs of `predict` to Docs: vectors, and layers if they are stored."""
        self.doc_layers.describe(self.name, self.shim)
        is_cleaned = self.tensor_listeners.linked.is_cleaned
        for doc, output in zip(docs, outputs, strict=True):
            doc.tensor = output.tensor  # type: ignore[assignment]
            owners = dict.fromkeys([self.doc_layers, *get_owners(doc)])
            set_vectors(doc, output.tensor, tuple(owners), is_cleaned, output.compared)
            if self.store_layers:
                extensions.set_layers(doc, output.layers, self.name, self.shim.fingerprint())  # type: ignore[arg-type]
            elif extensions.stored_by(doc) == self.name:  # by another one of this name
                doc.user_data.pop(extensions.LAYERS)
            if output.layers is not None and self.doc_layers.listeners:
                self.doc_layers.add(doc, output.layers)
            if self.vectors == "elmo" or (self.vectors == "auto" and not doc.vocab.vectors.size):
                add_hooks(doc)

    # Learning

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optional[Optimizer] = None,
        losses: Optional[Dict[str, float]] = None,
    ) -> Dict[str, float]:
        """Run the biLM over a batch for the listeners, which accumulate their gradients here.

        These are backpropagated in `finish_update`, or with the next batch if gradients are
        accumulated over several. So it does not matter which listeners learn from a batch.

        Args:
            examples: the batch.
            drop: not used; dropout is a setting of each mix.
            sgd: an optimizer, for a step by the gradients of the batch before.
            losses: gets the squared gradients of the listeners under the component's name; on a
                GPU as an array there.

        Returns:
            ``losses``.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "Elmo.update")
        self.doc_layers.end_batch()
        docs = [example.predicted for example in examples]
        layers, backprop = self.model.get_ref("bilm").begin_update(docs)
        check_tensor_listeners(self)
        batch = BatchGradients(
            docs, layers, backprop if self.shim.is_trainable else None, losses, self.name
        )
        batch.send_tensors(self.tok2vec_listeners, self.model.get_ref("mix"))
        self.doc_layers.describe(self.name, self.shim)
        self.doc_layers.start(batch)
        if sgd:
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Make a step by the gradients of all batches since the last one."""
        if self.doc_layers.batch.are_there:
            self.doc_layers.end_batch()
        take_along(self)
        super().finish_update(sgd)

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Optional[Language] = None
    ) -> None:
        """Load the weights and set up the mix. What has been learned before is forgotten.

        But it stays if a component listens that is not initialized, and has learned from it. A
        biLM that was loaded with a saved component stays, too.

        Args:
            get_examples: returns a sample of the training data.
            nlp: the pipeline.

        Raises:
            ValueError: the weights are missing or damaged, or do not fit a setting; or a component
                behind this one would read other vectors than it learns from, or has learned from
                another biLM.
        """
        if nlp is not None:
            self.doc_layers.nlp, self._card = ref(nlp), None
            self.tensor_listeners.check(self, nlp.vocab)
        is_anew = nlp is None or {*self.listener_map} <= {*nlp.pipe_names}
        if is_anew:
            self.shim.begin_anew()
        _ = self.shim.bilm  # loaded now rather than in the middle of the training
        self.shim.unfreeze_top(None)  # what an earlier training has frozen
        self.doc_layers.end_batch(with_gradients=False)
        self.doc_layers.describe(self.name, self.shim)
        config = self.shim.config
        own: Any
        for own in self.listeners:  # spaCy's annotation knows its own kind only
            if isinstance(own, ElmoListener):
                own.set_shape(config.depth, config.width)
                set_up(own.layers[0], config.depth, own.get_dim("nO"))
        if nlp is not None:
            begin_to_learn(self, nlp)
        self._warn_of_settings_without_effect()
        self._add_sources()
        validate_get_examples(get_examples, "Elmo.initialize")
        # Not by a sample, as spaCy's Tok2Vec does: its Docs may lack the sentences to read.
        mix = self.model.get_ref("mix")
        if is_anew:
            begin_anew(mix)
        set_up(mix, config.depth, config.width)
        self.model.initialize()

    def _warn_of_settings_without_effect(self) -> None:
        what = f"A setting of the component '{self.name}' has no effect: model."
        problems = []
        # Those of doc_layers may be disabled, or in another pipeline.
        if not (self.shim.settings.frozen or self.listener_map or self.doc_layers.listeners):
            problems.append(
                f"{what}frozen = false: no component listens to this one. Let one listen through "
                f"spacy-elmo.ElmoListener.v1, or set frozen = true."
            )
        mix = self.model.get_ref("mix").attrs["settings"]
        for name in () if self.tok2vec_listeners else ("dropout", "l2"):
            if value := getattr(mix, name):
                problems.append(
                    f"{what}mix.{name} = {value}: no spacy.Tok2VecListener.v1 learns from this "
                    f"mix. A spacy-elmo.ElmoListener.v1 has a mix of its own, and such settings."
                )
        for problem in problems:
            warnings.warn(problem, UserWarning, stacklevel=3)

    # Files

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        """Save the component, its weights included, and their card and licence beside it."""
        super().to_disk(path, exclude=exclude)
        if "model" in exclude:
            return
        for name in DOCUMENTS:
            (Path(path) / name).unlink(missing_ok=True)  # of other weights that were saved here
        for name, text in self.shim.card.documents.items():
            (Path(path) / name).write_text(text, encoding="utf-8")
        nlp, meta_json = self.doc_layers.nlp(), Path(path).parent / META
        self._card = None  # the user may have written another meta
        if self._add_sources() and nlp is not None and meta_json.is_file():
            # Such as those of weights that were loaded now: spaCy has written its meta already.
            meta = srsly.read_json(meta_json)
            if self.name in meta.get("components", ()):
                srsly.write_json(meta_json, {**meta, "sources": nlp.meta["sources"]})

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> "Elmo":
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
        with damage_reported(self.name, source):
            shim, mix = self.shim, self.model.get_ref("mix")
            before = shim.bilm if shim.is_loaded else None
            yield
            if "model" not in exclude:
                are_same = self.shim is shim and self.model.get_ref("mix") is mix
                if not (are_same and shim.is_loaded and shim.bilm is not before):
                    raise ValueError("a part of its model is missing")
                check_parameters(mix, shim.config.depth)
        self.doc_layers.are_known = False
        self._add_sources()

    def _check_tokenizer(self) -> None:
        """Warn, once, if the pipeline has another tokenizer than the weights were trained with."""
        nlp = self.doc_layers.nlp()
        if nlp is None or not self.shim.is_loaded or self._tokenizer_is_checked:
            return
        self._tokenizer_is_checked = True
        own = nlp.config["nlp"]["tokenizer"]["@tokenizers"]
        if isinstance(nlp.tokenizer, Tokenizer) == (own == BY_RULES):  # else it was replaced later
            warn_of_tokenizer(type(nlp), own, self.shim.card, self.shim.settings.weights)

    def _add_sources(self) -> bool:
        """Add the sources of loaded weights, once, to the pipeline's meta, and return whether
        there were new ones."""
        nlp = self.doc_layers.nlp()
        if nlp is None or not self.shim.is_loaded or self._card is self.shim.card:
            return False
        self._card = self.shim.card
        sources = nlp.meta.get("sources") or []
        new = [source for source in self._card.meta.get("sources", []) if source not in sources]
        if new:
            nlp.meta["sources"] = [*sources, *new]
        return bool(new)
