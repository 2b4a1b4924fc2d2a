"""The biLM in thinc's PyTorchWrapper: Docs in, all layers of their tokens out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict
from typing import Any, cast

import srsly
import torch
from spacy.tokens import Doc
from thinc.api import (
    ArgsKwargs,
    Model,
    Optimizer,
    PyTorchShim,
    PyTorchWrapper,
    get_torch_default_device,
    xp2torch,
)
from thinc.types import Floats3d, FloatsXd

from ..bilm.config import BiLMConfig
from ..bilm.fingerprint import fingerprint
from ..bilm.model import BiLM, State, weights_version
from ..bilm.torch_precision import rounding
from ..text.segments import DocPart, doc_parts
from ..util.locks import LOADING
from ..util.threads import threads_for
from ..weights import native
from ..weights.find import find_weights
from ..weights.layout import Card
from ..weights.statistics import Statistics
from .errors import warn_of_language
from .layer_cache import LayerCache
from .settings import BiLMSettings
from .similarity import Comparison


def bilm_layer(settings: BiLMSettings) -> Model[list[Doc], list[Floats3d]]:
    """All layers ``(L + 1, n_tokens, 2P)`` of each Doc; the rows of whitespace tokens are zeros.

    Opens no file: the weights are loaded at the first Doc with words.
    """
    model = PyTorchWrapper(None, convert_inputs=convert_inputs)
    model.name = "elmo-bilm"
    model.shims[0] = BiLMShim(settings)
    del model._dims["nI"]  # Docs have no width, which `concatenate` would look for
    return model


def convert_inputs(
    model: Model, docs: Sequence[Doc | DocPart], is_train: bool
) -> tuple[ArgsKwargs, Callable[[Any], Sequence[Doc | DocPart]]]:
    """Docs as `DocPart`s, which may take the place of Docs. They get no gradient: they return."""
    shim = cast(BiLMShim, model.shims[0])
    segments, max_words = shim.settings.segments, shim.settings.max_words
    parts = [
        doc if isinstance(doc, DocPart) else next(doc_parts(doc, segments, max_words, 1 + len(doc)))
        for doc in docs
    ]
    return ArgsKwargs(args=(parts,), kwargs={}), lambda d_parts: docs


class BiLMShim(PyTorchShim):
    """A biLM that is loaded at its first use; constructing the shim opens no file.

    Attributes:
        settings: how the biLM is found, run and trained.
        device: what it computes on.
        cache: layers of a frozen biLM, while something is trained on them.
        comparison: makes the vectors that are compared; None if there are no statistics (yet).
        component: name of the elmo component; empty where the biLM is in another one's model.
    """

    device: Any = None  # an attribute: thinc's property needs a model

    def __init__(self, settings: BiLMSettings):
        super().__init__(None)
        # Where thinc computes now: the current thread may have another default at the first Doc.
        self.device = get_torch_default_device()
        self.settings = settings
        self.cache = LayerCache(settings.cache_mb, settings.cache_half)
        self.comparison: Comparison | None = None
        self.component = ""
        self._n_trainable: int | None = None  # topmost parts of the biLM; None for all
        self._config: BiLMConfig | None = None
        self._card: Card | None = None
        self._language_is_checked = False
        self._is_saved = False  # the biLM came with a saved component, not from `weights`
        self._has_learned = False

    @property
    def config(self) -> BiLMConfig:
        """The biLM's shape, from its config file alone if it is not loaded yet."""
        if self._config is None:
            self._config = self._fitting(find_weights(self.settings.weights).config())
        return self._config

    @property
    def card(self) -> Card:
        """Name, language, licence and sources of the weights."""
        if self._card is None:
            self._card = find_weights(self.settings.weights).card()
        return self._card

    @property
    def is_loaded(self) -> bool:
        return self._model is not None

    @property
    def bilm(self) -> BiLM:
        """The biLM, loaded now if it was not.

        Raises:
            ValueError: the weights are missing or damaged, or not of the expected width.
        """
        if self._model is None:
            with LOADING, threads_for(0), torch.inference_mode(False):
                if self._model is None:  # no other thread has loaded it meanwhile
                    found = find_weights(self.settings.weights)
                    self._take(found.load(), found.card(), found.statistics())
        return self._model

    def begin_anew(self) -> None:
        """Let a biLM that has been trained be loaded from `weights` again; one that came with a
        saved component stays."""
        if self._has_learned and not self._is_saved:
            self._model, self._has_learned = None, False

    def _take(self, bilm: BiLM, card: Card, statistics: Statistics | None) -> None:
        """Use a biLM from now on, as the settings say."""
        self._config, self._card = self._fitting(bilm.config), card
        self.comparison = None if statistics is None else Comparison(statistics)
        bilm.set_precision(self.settings.precision, self.settings.compiled)
        bilm.n_threads = self.settings.threads
        self.cache = LayerCache(self.settings.cache_mb, self.settings.cache_half)
        self._model = bilm.to(self.device)
        self._set_requires_grad()

    def _fitting(self, config: BiLMConfig) -> BiLMConfig:
        if self.settings.width not in (None, config.width):
            raise ValueError(
                f"The elmo model's setting width = {self.settings.width} does not fit the weights "
                f"'{self.settings.weights}', whose vectors are {config.width}-dimensional. Remove "
                f"the setting (width = null) or set it to {config.width}."
            )
        return config

    def fingerprint(self) -> str:
        """Of the biLM, empty as long as it is not loaded, as by Docs without words."""
        return fingerprint(self.bilm) if self.is_loaded else ""

    def state(self) -> State:
        """The state that each sentence starts from, h ``(L, 2, 1, P)`` and c ``(L, 2, 1, D)``."""
        if self.settings.initial_state == "auto":
            return self.bilm.initial_state()
        if self.settings.initial_state == "warm":
            return self.bilm.warm_state()
        return self.bilm.zero_state()

    # The forward and backward pass

    def predict(self, inputs: ArgsKwargs) -> list[torch.Tensor]:
        """The layers ``(L + 1, n_tokens, 2P)`` of `DocPart`s, without a graph.

        Args:
            inputs: the parts, as the only positional argument.
        """
        with torch.no_grad():
            return self._read(inputs.args[0])

    def begin_update(
        self, inputs: ArgsKwargs
    ) -> tuple[list[torch.Tensor], Callable[[ArgsKwargs], None]]:
        """The layers of `DocPart`s, with a graph if the biLM is trained.

        Args:
            inputs: see `predict`.

        Returns:
            The layers, and a callback that takes their gradients as ``grad_tensors``.
        """
        if not self.is_trainable:
            if self.settings.frozen:
                self.cache.enable()
            return self.predict(inputs), lambda d_layers: None
        parts = inputs.args[0]
        with torch.enable_grad():  # whatever the caller has switched off
            layers = self._read(parts)
        n_windows = sum(len(part.windows) for part in parts)

        def backprop(d_layers: ArgsKwargs) -> None:
            pairs = zip(layers, d_layers.kwargs["grad_tensors"], strict=True)
            learned = [(y, dy) for y, dy in pairs if y.requires_grad]
            if learned:  # not whitespace alone
                outputs, gradients = zip(*learned, strict=True)
                with threads_for(n_windows * self.bilm.config.layer_size, self.settings.threads):
                    torch.autograd.backward(outputs, gradients)

        return [each.detach() for each in layers], backprop

    @threads_for(0)
    def _read(self, parts: Sequence[DocPart]) -> list[torch.Tensor]:
        """Layers ``(L + 1, n_tokens, 2P)``; without a graph from the cache where they are in it."""
        sentences = [window.words for part in parts for window in part.windows]
        layers: list[torch.Tensor] = []
        if sentences:  # else no weights are needed
            if not self._language_is_checked:
                self._language_is_checked = True
                lang, weights = parts[0].doc.vocab.lang, self.settings.weights
                own = f"[components.{self.component}.model]"
                block = own if self.component else "the biLM's block"
                warn_of_language(lang, self.card, weights, block)
            bilm = self.bilm.train(torch.is_grad_enabled())
            state, n_words = self.state(), self.settings.batch_words

            def read(some: Sequence[Sequence[str]]) -> list[torch.Tensor]:
                return bilm.read(some, state, n_words, with_state=False)[0]

            if self.cache.is_on and not bilm.training:
                version = weights_version(bilm), bilm.precision, rounding(self.device)
                layers = self.cache.lookup(sentences, read, version)
            else:
                layers = read(sentences)
        # Popped as they are used: what was read together is freed with the last of its Docs.
        layers.reverse()
        return [self._in_rows(part, [layers.pop() for _ in part.windows]) for part in parts]

    def _in_rows(self, part: DocPart, layers: list[torch.Tensor]) -> torch.Tensor:
        """The layers of a part's windows in the rows of their tokens."""
        is_whole = len(layers) == 1 and len(part.windows[0].tokens) == len(part)
        if is_whole and layers[0].shape[1] == len(part) and not self.cache.is_on:
            return layers[0]  # no copy, unless they may be the cache's own
        config = self.config
        shape = config.depth, len(part), config.width
        output = torch.zeros(shape, dtype=torch.float32, device=self.device)
        for window, read in zip(part.windows, layers, strict=True):
            output[:, window.rows] = read[:, window.used]
        return output

    # Training

    @property
    def is_trainable(self) -> bool:
        """Return whether any of the parameters is trained."""
        return not self.settings.frozen and self._n_trainable != 0

    def unfreeze_top(self, n_parts: int | None) -> None:
        """Train the topmost parts of a biLM that is not frozen as a whole, and freeze the rest.

        Args:
            n_parts: how many: LSTM layers from the top, then the token encoder. None for all.
        """
        if n_parts != self._n_trainable:
            self._n_trainable = n_parts
            if self._model is not None:
                self._set_requires_grad()

    def _set_requires_grad(self) -> None:
        self._model.requires_grad_(False)
        if not self.settings.frozen:
            parts = [*reversed(self._model.lstm), self._model.token_encoder]
            for part in parts[: self._n_trainable]:
                part.requires_grad_(True)
        for parameter in self._model.parameters():
            if not parameter.requires_grad:
                parameter.grad = None  # with a gradient of zeros, too, an optimizer would move it

    def finish_update(self, optimizer: Optimizer) -> None:
        """Make a step, at a learning rate of its own.

        Scaling the gradients would not do: the size of Adam's steps does not depend on theirs.
        """
        if self.settings.frozen or self._model is None:
            return
        factor = self.settings.learn_rate_factor
        if factor == 1:
            super().finish_update(optimizer)
        else:
            learn_rate = optimizer.learn_rate
            optimizer.learn_rate = learn_rate * factor
            try:
                super().finish_update(optimizer)
            finally:
                optimizer.learn_rate = learn_rate
        self._has_learned = True
        self._clear_caches()

    @contextlib.contextmanager
    def use_params(self, params: dict[tuple[int, str], FloatsXd]) -> Iterator[None]:
        """Use other weights inside a ``with`` block, such as an optimizer's averages."""
        # `PyTorchShim` looks for keys that no optimizer writes.
        if self._model is None:
            yield
            return
        before = {
            name: parameter.data
            for name, parameter in self._model.named_parameters()
            if (self.id, name) in params
        }
        self._set_parameters({n: xp2torch(params[self.id, n], device=self.device) for n in before})
        try:
            yield
        finally:
            self._set_parameters(before)

    def _set_parameters(self, parameters: dict[str, torch.Tensor]) -> None:
        if parameters:
            for name, value in parameters.items():
                self._model.get_parameter(name).data = value
            self._clear_caches()

    def _clear_caches(self) -> None:
        """The weights have changed in a way that PyTorch's version counters do not show."""
        self._model.clear_caches()
        self.cache.disable()

    # Copies, devices and serialization, also before the biLM was loaded

    def to_device(self, device_type: str, device_id: int) -> None:
        self.device = torch.device("cpu" if device_type == "cpu" else f"cuda:{device_id}")
        self.cache = LayerCache(self.settings.cache_mb, self.settings.cache_half)
        if self._model is not None:
            super().to_device(device_type, device_id)

    def copy(self) -> BiLMShim:
        """A shim with a copy of the biLM, which shares its weights in memory if it is frozen."""
        copied = BiLMShim(self.settings)
        copied._config, copied._card, copied.comparison = self._config, self._card, self.comparison
        copied._language_is_checked = self._language_is_checked
        copied._is_saved, copied._has_learned = self._is_saved, self._has_learned
        copied.device, copied._n_trainable = self.device, self._n_trainable
        if self._model is not None and self.settings.frozen:
            copied._model, copied.cache = self._model.share_weights(), self.cache
        elif self._model is not None:
            copied._model = deepcopy(self._model)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> BiLMShim:
        return self.copy()

    def to_bytes(self) -> bytes:
        """The biLM with its initial state, config and card; it is loaded for that if it was not."""
        self.state()  # a warm state is computed now, so that it is serialized too
        state: dict[str, Any] = {"config": self.bilm.config.to_dict(), "card": asdict(self.card)}
        state["weights"] = native.to_bytes(self.bilm)
        if self.comparison is not None:
            state["statistics"] = self.comparison.statistics.to_bytes()
        return srsly.msgpack_dumps(state)

    def from_bytes(self, bytes_data: bytes) -> BiLMShim:
        """Take the biLM that `to_bytes` serialized; a ValueError if the bytes are damaged."""
        try:
            state = srsly.msgpack_loads(bytes_data)
            config, card = BiLMConfig.from_dict(state["config"]), Card(**state["card"])
            bilm = native.from_bytes(config, state["weights"])
            statistics = state.get("statistics")
            if statistics is not None:
                statistics = Statistics.from_bytes(statistics, config)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"The serialized elmo component is damaged: {error}") from error
        self._take(bilm, card, statistics)
        self._is_saved = True
        return self

    def __reduce__(self) -> Any:
        """For pickle: the settings, and the biLM as bytes."""
        return _unpickle, (self.settings, self._language_is_checked, self.to_bytes())


def _unpickle(settings: BiLMSettings, language_is_checked: bool, data: bytes) -> BiLMShim:
    shim = BiLMShim(settings).from_bytes(data)
    shim._language_is_checked = language_is_checked
    return shim
