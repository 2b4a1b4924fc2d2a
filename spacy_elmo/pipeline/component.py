"""The pipeline component: runs a biLM over Docs and writes contextual vectors to them."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Optional, Union  # noqa: UP035

from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d

from ..text.segments import chunks
from ..weights.find import WeightsNotFoundError
from . import extensions
from .bilm_shim import BiLMShim
from .check_settings import (
    check_settings,
    check_widths,
    damage_reported,
    warn_of_settings_without_effect,
)
from .doc_layers import DocLayers
from .doc_vectors import get_owners, set_vectors
from .elmo_model import ReplacedConfig
from .gradients import Batch, add_loss
from .learned_from import begin_to_learn, check_tensor_listeners, take_along
from .listener import ElmoListener
from .long_docs import Output, predict_docs, tokens_at_once
from .model_nodes import model_nodes
from .scalar_mix import set_up
from .sources import add_sources, update_saved_sources
from .tensor_conflicts import TensorConflicts

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP007, UP045


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
        doc_layers: what it shares with its `ElmoListener`s.
        tensor_conflicts: finds listeners that would read the wrong ``doc.tensor``; knows the
            pipeline.
    """

    hide_labels = True  # there are none, and nlp.meta should not list them

    def __init__(
        self,
        vocab: Vocab,
        model: Model[List[Doc], List[Floats2d]],
        name: str = "elmo",
        *,
        store_layers: bool = False,
        vectors: str = "auto",
    ):
        check_settings(vectors, model)
        super().__init__(vocab, model, name)
        model.attrs["replace_listener_cfg"] = ReplacedConfig(name)
        self.store_layers = store_layers
        self.vectors = vectors
        self.doc_layers = DocLayers(name)
        self.tensor_conflicts = TensorConflicts()

    @property
    def shim(self) -> BiLMShim:
        """The model's shim, which loads and runs the biLM."""
        return self.model.get_ref("bilm").shims[0]  # type: ignore[return-value]

    @property
    def elmo_listeners(self) -> List[ElmoListener]:
        """Listeners that get the layers, each with a mix of its own."""
        every: List[Any] = self.listeners  # spaCy's annotation knows its own kind only
        return [listener for listener in every if isinstance(listener, ElmoListener)]

    @property
    def tok2vec_listeners(self) -> List[Tok2VecListener]:
        """spaCy's listeners, which get ``doc.tensor`` and share the component's mix."""
        return [listener for listener in self.listeners if isinstance(listener, Tok2VecListener)]

    def find_listeners(self, component: Any) -> None:
        """Link the listeners in a component's model that name this one; spaCy calls this.

        An `ElmoListener` gets the shape of the layers here, from the config of the weights alone.
        Weights that cannot be found are reported when they are needed: a saved pipeline contains
        its own.

        Raises:
            ValueError: the weights do not fit a setting, or their config is damaged.
        """
        self.doc_layers.describe(self)
        self.model.attrs["replace_listener_cfg"].component = self.name  # it may have another now
        names = ("*", self.name) if self.tensor_conflicts.writes_last(self) else (self.name,)
        for listener in model_nodes(component, Tok2VecListener):
            if listener.upstream_name in names:
                self.add_listener(listener, component.name)
        for own in model_nodes(component, ElmoListener):
            if own.accepts(self.doc_layers):
                self.add_listener(own, component.name)  # type: ignore[arg-type]
                with contextlib.suppress(WeightsNotFoundError):
                    own.set_shape(self.shim.config.n_layers + 1, self.shim.config.width)
        self.tensor_conflicts.link(self, component)

    def remove_listener(self, listener: Any, component_name: str) -> bool:
        """Unlink a listener; spaCy calls this while it goes over the component's list of them."""
        before = self.listener_map.pop(component_name, [])
        others = [other for other in before if other is not listener]
        if others:
            self.listener_map[component_name] = others
        if isinstance(listener, ElmoListener):
            listener.unlink(self.doc_layers)
        return len(others) < len(before)

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
            self.tensor_conflicts.check(self, docs[0].vocab)
        if self.model.has_dim("nO") is None:
            self.model.set_dim("nO", self.shim.config.width)
        check_widths(self)
        with_layers = self.store_layers or bool(self.doc_layers.listeners)
        outputs = predict_docs(docs, self.model, with_layers)
        check_tensor_listeners(self)
        self._add_sources()
        return outputs

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of Docs, as many at a time as some passes of the biLM read.

        Args:
            stream: any number of Docs.
            batch_size: the most Docs at a time.
        """
        handle = self.get_error_handler()
        for docs in chunks(stream, tokens_at_once(self.shim), batch_size):
            try:
                self.set_annotations(docs, self.predict(docs))
            except Exception as error:
                handle(self.name, self, docs, error)
            else:
                yield from docs

    def set_annotations(self, docs: Sequence[Doc], outputs: Sequence[Output]) -> None:
        """Write the outputs of `predict` to Docs: vectors, and layers if they are stored."""
        self.doc_layers.describe(self)
        for doc, output in zip(docs, outputs, strict=True):
            doc.tensor = output.tensor  # type: ignore[assignment]
            owners = dict.fromkeys([self.doc_layers, *get_owners(doc)])
            weak = self.tensor_conflicts.is_cleaned
            set_vectors(doc, output.tensor, tuple(owners), weak, output.compared)
            if self.store_layers:
                extensions.set_layers(doc, output.layers, self.name)  # type: ignore[arg-type]
            if output.layers is not None and self.doc_layers.listeners:
                self.doc_layers.add(doc, output.layers)
            if self.vectors == "elmo" or (self.vectors == "auto" and not doc.vocab.vectors.size):
                extensions.set_vector_hooks(doc)

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
        check_widths(self)
        self.doc_layers.batch.backprop()
        self.doc_layers.batch.close()  # also where no listener had a gradient
        docs = [example.predicted for example in examples]
        layers, backprop_layers = self.model.get_ref("bilm").begin_update(docs)
        check_tensor_listeners(self)
        backprop = backprop_layers if self.shim.is_trainable else None
        batch = Batch(docs, layers, backprop, partial(add_loss, losses, self.name))
        batch.send_tensors(self.tok2vec_listeners, self.model.get_ref("mix"))
        self.doc_layers.describe(self)
        self.doc_layers.start(batch)
        if sgd:
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Make a step by the gradients of all batches since the last one."""
        self.doc_layers.batch.backprop()
        take_along(self)
        super().finish_update(sgd)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
    ) -> None:
        """Load the weights and set up the mix.

        Args:
            get_examples: returns a sample of the training data.
            nlp: the pipeline.

        Raises:
            ValueError: the weights are missing or damaged, or do not fit a setting; or a component
                behind this one would read other vectors than it learns from, or has learned from
                another biLM.
        """
        if nlp is not None:
            self.tensor_conflicts.nlp = nlp
            self.tensor_conflicts.check(self, nlp.vocab)
        self.shim.bilm  # noqa: B018  # now rather than in the middle of the training
        self.shim.unfreeze_top(None)  # what an earlier training has frozen
        self.doc_layers.batch.close()  # and its gradients
        for own in self.elmo_listeners:
            own.set_shape(self.shim.config.n_layers + 1, self.shim.config.width)
            set_up(own.layers[0], own.n_layers, own.get_dim("nO"))
        check_widths(self)
        warn_of_settings_without_effect(self)
        self.doc_layers.describe(self)
        if nlp is not None:
            begin_to_learn(self, nlp)
        self._add_sources()
        super().initialize(get_examples, nlp=nlp)

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        """Save the component, its weights included, and their card and licence beside it."""
        super().to_disk(path, exclude=exclude)
        if "model" in exclude:
            return
        for name, text in self.shim.card.documents.items():
            (Path(path) / name).write_text(text, encoding="utf-8")
        nlp = self.tensor_conflicts.nlp
        if nlp is not None and self._add_sources():  # of weights that nothing has needed before
            update_saved_sources(Path(path).parent / "meta.json", nlp, self.name)

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
        with damage_reported(self.name, source, None if "model" in exclude else self.model):
            yield
        self.doc_layers.are_known = False
        self._add_sources()

    def _add_sources(self) -> bool:
        """Add the sources of loaded weights to the pipeline's; whether there are new ones."""
        nlp = self.tensor_conflicts.nlp
        return nlp is not None and self.shim.is_loaded and add_sources(nlp, self.shim.card)
