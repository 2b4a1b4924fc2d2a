"""The shim around the biLM: loads it when it is needed, runs it, and trains it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import torch
from thinc.api import ArgsKwargs, Optimizer, PyTorchShim, get_torch_default_device, xp2torch
from thinc.types import FloatsXd

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM, State, weights_version
from ..bilm.torch_precision import rounding
from ..text.segments import Window
from ..util.locks import LOADING
from ..util.threads import threads_for
from ..weights.find import find_weights
from ..weights.layout import Card
from .errors import warn_of_language
from .layer_cache import LayerCache
from .loaded_bilm import LoadedBiLM
from .settings import BiLMSettings
from .similarity import Comparison

EncodedDoc = list[tuple[Window, torch.Tensor]]  # windows with their layers (L + 1, n_words, 2P)


class BiLMShim(PyTorchShim):
    """A biLM that is loaded at its first use; constructing the shim opens no file.

    Attributes:
        settings: how the biLM is found, run and trained.
        device: what it computes on.
        cache: layers of a frozen biLM, while something is trained on them.
        comparison: makes the vectors that are compared; None if there are no statistics (yet).
    """

    def __init__(self, settings: BiLMSettings):
        super().__init__(None)
        # Where thinc computes now: the current thread may have another default at the first Doc.
        self._device = get_torch_default_device()
        self.settings = settings
        self.cache = LayerCache(settings.cache_mb, settings.cache_half)
        self.comparison: Comparison | None = None
        self._n_trainable: int | None = None  # topmost parts of the biLM; None for all
        self._config: BiLMConfig | None = None
        self._card: Card | None = None
        self._warned_of_language = False

    @property
    def device(self) -> torch.device:
        return self._device

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
        """The biLM, see `load`."""
        return self.load()

    def load(self) -> BiLM:
        """Load the biLM, if it is not loaded.

        Raises:
            ValueError: the weights are missing or damaged, or not of the expected width.
        """
        if self._model is None:
            with LOADING, threads_for(0):
                if self._model is None:  # no other thread has loaded it meanwhile
                    self._take(LoadedBiLM.find(self.settings.weights))
        return self._model

    def _take(self, loaded: LoadedBiLM) -> None:
        """Use a biLM from now on, as the settings say."""
        bilm, self._card, statistics = loaded
        self._config = self._fitting(bilm.config)
        self.comparison = None if statistics is None else Comparison(statistics)
        bilm.set_precision(self.settings.precision, self.settings.compiled)
        bilm.n_threads = self.settings.threads
        self.cache = LayerCache(self.settings.cache_mb, self.settings.cache_half)
        self._model = bilm.to(self._device)
        self._set_requires_grad()

    def _fitting(self, config: BiLMConfig) -> BiLMConfig:
        if self.settings.width not in (None, config.width):
            raise ValueError(
                f"The elmo model's setting width = {self.settings.width} does not fit the weights "
                f"'{self.settings.weights}', whose vectors are {config.width}-dimensional. Remove "
                f"the setting (width = null) or set it to {config.width}."
            )
        return config

    def state(self) -> State:
        """The state that each sentence starts from, h ``(L, 2, 1, P)`` and c ``(L, 2, 1, D)``."""
        if self.settings.initial_state == "auto":
            return self.bilm.initial_state()
        if self.settings.initial_state == "warm":
            return self.bilm.warm_state()
        return self.bilm.zero_state()

    def check_language(self, lang: str) -> None:
        """Warn once if the weights are of another language than the pipeline."""
        if not self._warned_of_language:
            weights, block = self.settings.weights, "[components.elmo.model]"
            self._warned_of_language = warn_of_language(lang, self.card, weights, block)

    # The forward and backward pass

    def predict(self, inputs: ArgsKwargs) -> list[EncodedDoc]:
        """The layers of all windows, without a graph, from the cache where they are in it.

        Args:
            inputs: the windows of each Doc, as the only positional argument.
        """
        with torch.no_grad():
            return self._encode(inputs, self._read_cached)

    def begin_update(
        self, inputs: ArgsKwargs
    ) -> tuple[list[EncodedDoc], Callable[[ArgsKwargs], None]]:
        """The layers of all windows, with a graph if the biLM is trained.

        Args:
            inputs: see `predict`.

        Returns:
            The layers, and a callback that takes the arguments of `torch.autograd.backward`.
        """
        if not self.is_trainable:
            if self.settings.frozen:
                self.cache.enable()
            return self.predict(inputs), lambda d_layers: None

        def backprop(d_layers: ArgsKwargs) -> None:
            if windows := d_layers.args[0]:
                with threads_for(len(windows) * self.bilm.layer_size, self.settings.threads):
                    torch.autograd.backward(*d_layers.args, **d_layers.kwargs)

        return self._encode(inputs, self._read), backprop

    @threads_for(0)
    def _encode(
        self, inputs: ArgsKwargs, read: Callable[[Sequence[Sequence[str]]], list[torch.Tensor]]
    ) -> list[EncodedDoc]:
        docs: list[list[Window]] = inputs.args[0]
        sentences = [window.words for windows in docs for window in windows]
        layers = iter(read(sentences) if sentences else [])  # an empty batch loads no weights
        return [[(window, next(layers)) for window in windows] for windows in docs]

    def _read(self, sentences: Sequence[Sequence[str]]) -> list[torch.Tensor]:
        """Layers ``(L + 1, n_words, 2P)``, with a graph where gradients are enabled."""
        bilm = self.bilm.train(torch.is_grad_enabled())
        return bilm.read(sentences, self.state(), self.settings.batch_words, with_state=False)[0]

    def _read_cached(self, sentences: Sequence[Sequence[str]]) -> list[torch.Tensor]:
        version = weights_version(self.bilm), self.bilm.precision, rounding(self.device)
        return self.cache.lookup(sentences, self._read, version)

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
        self._device = torch.device("cpu" if device_type == "cpu" else f"cuda:{device_id}")
        self.cache = LayerCache(self.settings.cache_mb, self.settings.cache_half)
        if self._model is not None:
            super().to_device(device_type, device_id)

    def copy(self) -> BiLMShim:
        """A shim with a copy of the biLM, which shares its weights in memory if it is frozen."""
        copied = BiLMShim(self.settings)
        copied._config, copied._card, copied.comparison = self._config, self._card, self.comparison
        copied._warned_of_language = self._warned_of_language
        copied._device, copied._n_trainable = self._device, self._n_trainable
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
        statistics = None if self.comparison is None else self.comparison.statistics
        return LoadedBiLM(self.bilm, self.card, statistics).to_bytes()

    def from_bytes(self, bytes_data: bytes) -> BiLMShim:
        self._take(LoadedBiLM.from_bytes(bytes_data))
        return self

    def __reduce__(self) -> Any:
        """For pickle: the settings, and the biLM as bytes."""
        return _unpickle, (self.settings, self._warned_of_language, self.to_bytes())


def _unpickle(settings: BiLMSettings, warned_of_language: bool, data: bytes) -> BiLMShim:
    shim = BiLMShim(settings).from_bytes(data)
    shim._warned_of_language = warned_of_language
    return shim
