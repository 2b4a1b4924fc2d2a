"""The pipeline component: reads Docs with a biLM and writes contextual vectors to them."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Union  # noqa: UP035

from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer
from thinc.types import Floats2d, Floats3d

from . import extensions
from .checks import (
    check_widths,
    warn_of_other_tensors,
    warn_of_settings_without_effect,
)
from .gradients import Gradients
from .kept import keep_layers
from .listener import ElmoListener, is_linked, link
from .mixed import ReplacedConfig
from .scalar_mix import set_up
from .shim import BiLMShim

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006, UP007, UP045

VECTORS = ("auto", "elmo", "vocab")
CHUNK_SIZE = 2**23  # 32 MiB of layers, or those of batch_words if they take more


class Output(NamedTuple):
    """What the component has to say of one Doc.

    Attributes:
        tensor: mixed vectors ``(n_tokens, 2P)``.
        layers: all layers ``(L + 1, n_tokens, 2P)`` if they are to be stored or listened to.
    """

    tensor: Floats2d
    layers: Optional[Floats3d]


class Elmo(Tok2Vec):
    """Gives each token a vector that depends on its sentence.

    Writes ``doc.tensor`` and the extensions ``._.elmo``; other components can learn from it
    through `spacy-elmo.ElmoListener.v1` or `spacy.Tok2VecListener.v1`.

    Args:
        vocab: the pipeline's.
        model: a `spacy-elmo.Elmo.v1` model.
        name: the component's name.
        store_layers: keep all layers on each Doc, as ``doc._.elmo_layers``.
        vectors: whether ``vector`` and ``similarity`` of Docs, Spans and Tokens come from ELMo:
            ``"elmo"``, ``"vocab"`` (never), or ``"auto"``, if the vocab has no vectors.

    Raises:
        ValueError: a setting is unknown, or the model is another.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[List[Doc], List[Floats2d]],
        name: str = "elmo",
        *,
        store_layers: bool = False,
        vectors: str = "auto",
    ):
        if vectors not in VECTORS:
            known = ", ".join(f'"{choice}"' for choice in VECTORS)
            raise ValueError(
                f'The elmo component\'s setting vectors = "{vectors}" is unknown; use {known}.'
            )
        if not {"bilm", "mix"} <= set(model.ref_names):
            raise ValueError(
                f"The elmo component's model must be the architecture spacy-elmo.Elmo.v1, found "
                f"'{model.name}'."
            )
        super().__init__(vocab, model, name)
        model.attrs["replace_listener_cfg"] = ReplacedConfig(name)
        self.store_layers = store_layers
        self.vectors = vectors
        self.pipeline_meta: Dict[str, Any] = {}
        self._gradients = Gradients()

    @property
    def shim(self) -> BiLMShim:
        """What holds the biLM."""
        return self.model.get_ref("bilm").shims[0]  # type: ignore[return-value]

    @property
    def elmo_listeners(self) -> List[ElmoListener]:
        """Those that get the layers, each for a mix of its own."""
        every: List[Any] = self.listeners  # spaCy's annotation knows its own kind only
        return [listener for listener in every if isinstance(listener, ElmoListener)]

    @property
    def _is_listened_to(self) -> bool:
        """Whether layers are needed, if only in another pipeline that this component is in."""
        return bool(self.elmo_listeners) or is_linked(self)

    @property
    def tok2vec_listeners(self) -> List[Tok2VecListener]:
        """spaCy's, that get ``doc.tensor`` and share the component's mix."""
        return [listener for listener in self.listeners if isinstance(listener, Tok2VecListener)]

    def find_listeners(self, component: Any) -> None:
        """Link the listeners in a component's model that name this one; spaCy calls this.

        An `ElmoListener` learns the shape of the layers here, from the config of the weights
        alone. If they cannot be found, that is reported when they are needed.
        """
        self.model.attrs["replace_listener_cfg"].component = self.name  # it may have another now
        super().find_listeners(component)
        if not isinstance(getattr(component, "model", None), Model):
            return
        for node in component.model.walk():
            if isinstance(node, ElmoListener) and node.upstream == self.name:
                self.add_listener(node, component.name)  # type: ignore[arg-type]
                link(node, self)
                node.samples.clear()  # spaCy calls this, too, when all are initialized
                with contextlib.suppress(ValueError):
                    config = self.shim.config
                    node.set_shape(config.n_layers + 1, config.width)

    def remove_listener(self, listener: Any, component_name: str) -> bool:
        """Unlink a listener; spaCy calls this while it goes over the component's list of them."""
        before = self.listener_map.get(component_name, [])
        kept = [other for other in before if other is not listener]
        if kept:
            self.listener_map[component_name] = kept
        else:
            self.listener_map.pop(component_name, None)
        return len(kept) < len(before)

    @property
    def hide_labels(self) -> bool:
        """True: there are no labels.

        spaCy asks for this when it assembles ``nlp.meta``, also to save it, which is the moment
        to name the sources of weights that nothing has needed so far.
        """
        self._name_sources()
        return True

    def _name_sources(self) -> None:
        """Add the sources of the weights to ``nlp.meta["sources"]``."""
        try:
            card = self.shim.card.meta
        except ValueError:
            return  # weights that cannot be found are reported when they are needed
        sources = self.pipeline_meta.get("sources") or []
        new = [source for source in card.get("sources", []) if source not in sources]
        self.pipeline_meta["sources"] = [*sources, *new]

    def predict(self, docs: Iterable[Doc]) -> List[Output]:
        """Vectors of Docs, which are not changed.

        Args:
            docs: any number of them; they are read some thousand words at a time.

        Returns:
            An `Output` for each.
        """
        bilm, mix = self.model.get_ref("bilm"), self.model.get_ref("mix")
        if self.model.has_dim("nO") is None:
            self.model.set_dim("nO", self.shim.config.width)
        check_widths(self.name, self.shim.config.width, self.listener_map)
        outputs: List[Output] = []
        keeps = self.store_layers or self._is_listened_to
        config, batch_words = self.shim.config, self.shim.settings.batch_words
        fitting = CHUNK_SIZE // ((config.n_layers + 1) * config.width)
        for chunk in _chunks(docs, min(max(fitting, batch_words), 4 * batch_words)):
            layers = bilm.predict(chunk)
            tensors = mix.predict(layers)
            kept = layers if keeps else [None] * len(chunk)
            outputs.extend(map(Output, tensors, kept))
        return outputs

    def set_annotations(self, docs: Sequence[Doc], outputs: Sequence[Output]) -> None:
        """Write vectors, and layers if they are to be stored, to Docs.

        Args:
            docs: the Docs.
            outputs: from `predict`.
        """
        for doc, output in zip(docs, outputs, strict=True):
            doc.tensor = output.tensor  # type: ignore[assignment]
            if self.store_layers:
                extensions.set_layers(doc, output.layers, self.name)  # type: ignore[arg-type]
            if output.layers is not None and self._is_listened_to:
                keep_layers(doc, self.name, output.layers, self.shim.cache)
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
        """Read a batch for the listeners, which leave their gradients here.

        What they leave is backpropagated in `finish_update`, or here with the next batch, if
        gradients are accumulated over several. So it does not matter which of the listeners
        learn something from a batch.

        Args:
            examples: the batch.
            drop: not used; what is dropped is a setting of each mix.
            sgd: an optimizer, to change the weights after what was left before.
            losses: gets the squared gradients of the listeners under the component's name.

        Returns:
            ``losses``.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "Elmo.update")
        check_widths(self.name, self.shim.config.width, self.listener_map)
        self._gradients.backpropagate()
        self._gradients.drop()  # also if nobody had anything to say
        docs = [example.predicted for example in examples]
        layers, backprop_layers = self.model.get_ref("bilm").begin_update(docs)

        def add_loss(loss: float) -> None:
            losses[self.name] += loss

        self._gradients = Gradients(
            docs, layers, backprop_layers if self.shim.is_trainable else None, add_loss
        )
        for doc, of_doc in zip(docs, layers, strict=True):
            keep_layers(doc, self.name, of_doc, self.shim.cache, self._gradients)
        self._gradients.hand_tensors(self.tok2vec_listeners, self.model.get_ref("mix"))
        if sgd:
            self.finish_update(sgd)
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Change the weights by the gradients of all batches since the last time."""
        self._gradients.backpropagate()
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
            ValueError: the weights are missing or damaged, or do not fit a setting.
        """
        if nlp is not None:
            self.pipeline_meta = nlp._meta
        self.shim.bilm  # noqa: B018  # now rather than in the middle of the training
        self.shim.unfreeze_top(None)  # what an earlier training has held back
        self._gradients.drop()  # and what it has left
        for own in self.elmo_listeners:
            own.set_shape(self.shim.config.n_layers + 1, self.shim.config.width)
            set_up(own.layers[0], own.n_layers, own.get_dim("nO"))
        check_widths(self.name, self.shim.config.width, self.listener_map)
        warn_of_settings_without_effect(
            self.name,
            self.shim.settings.frozen,
            self.model.get_ref("mix").attrs["settings"],
            self.listener_map,
            is_linked(self),
        )
        if nlp is not None:
            warn_of_other_tensors(self.name, nlp.pipeline, self.listener_map)
        super().initialize(get_examples, nlp=nlp)

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        """Save the component, its weights included, and their card and licence beside it."""
        super().to_disk(path, exclude=exclude)
        if "model" in exclude:
            return
        for name, text in self.shim.card.documents.items():
            (Path(path) / name).write_text(text, encoding="utf-8")


def _chunks(docs: Iterable[Doc], n_words: int) -> Iterator[List[Doc]]:
    """Docs in order, in lists that end with the one that reaches ``n_words`` tokens."""
    chunk: List[Doc] = []
    size = 0
    for doc in docs:
        chunk.append(doc)
        size += len(doc)
        if size >= n_words:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
