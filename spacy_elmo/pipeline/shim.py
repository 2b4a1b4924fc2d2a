"""Holds the biLM inside a thinc model: loads it when it is needed, and saves it with the model."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any

import srsly
import torch
from thinc.api import Optimizer, PyTorchShim, get_torch_default_device, xp2torch
from thinc.types import FloatsXd

from ..bilm import weights as bilm_weights
from ..bilm.config import BiLMConfig
from ..bilm.find import Setting, find_weights
from ..bilm.layout import Card
from ..bilm.model import BiLM, State
from .cache import LayerCache


@dataclass(frozen=True)
class Settings:
    """What a biLM in a pipeline is set to; not serialized with the model.

    Attributes:
        weights: see `find.find_weights`; what was deserialized comes before it.
        frozen: the biLM does not learn. Copies of a frozen one share its weights.
        width: size 2P that the user expects, None for no expectation.
        initial_state: ``"auto"``, ``"zero"`` or ``"warm"``.
        learn_rate_factor: by which the optimizer's learning rate is multiplied for the biLM.
        cache_mb, cache_half: see `cache.LayerCache`.
    """

    weights: Setting
    frozen: bool
    width: int | None
    initial_state: str
    learn_rate_factor: float
    cache_mb: int
    cache_half: bool


class BiLMShim(PyTorchShim):
    """A biLM that is loaded at its first use; building one opens no file.

    Attributes:
        cache: what the biLM has read, while something learns from it and it does not.
    """

    def __init__(self, settings: Settings):
        super().__init__(None)
        # Where thinc computes now: the current thread may have another default at the first Doc.
        self._device = get_torch_default_device()
        self.settings = settings
        self.cache = LayerCache(settings.cache_mb, settings.cache_half)
        self._n_learning: int | None = None  # of the parts, from above; None for all
        self._config: BiLMConfig | None = None
        self._card: Card | None = None
        self._warned_of_language = False

    @property
    def config(self) -> BiLMConfig:
        """The biLM's shape, from its config file alone if it is not loaded yet."""
        if self._config is None:
            self._set_config(find_weights(self.settings.weights).config())
        assert self._config is not None
        return self._config

    @property
    def card(self) -> Card:
        """Name, language, licence and sources of the weights."""
        if self._card is None:
            self._card = find_weights(self.settings.weights).card()
        return self._card

    @property
    def bilm(self) -> BiLM:
        """The biLM, loaded now if it was not.

        Raises:
            ValueError: the weights are missing or damaged, or not of the expected width.
        """
        if self._model is None:
            weights = find_weights(self.settings.weights)
            self._set_config(weights.config())
            self._card = weights.card()
            self._set_model(weights.load())
        return self._model

    @property
    def is_loaded(self) -> bool:
        return self._model is not None

    def _set_config(self, config: BiLMConfig) -> None:
        if self.settings.width is not None and self.settings.width != config.width:
            raise ValueError(
                f"The elmo model's setting width = {self.settings.width} does not fit the weights "
                f"'{self.settings.weights}', whose vectors have {config.width} numbers. Remove the "
                f"setting (width = null) or set it to {config.width}."
            )
        self._config = config

    def state(self) -> State:
        """What each sentence starts from, h ``(L, 2, 1, P)`` and c ``(L, 2, 1, D)``."""
        if self.settings.initial_state == "auto":
            return self.bilm.initial_state()
        if self.settings.initial_state == "warm":
            return self.bilm.warm_state()
        return self.bilm.zero_state()

    def _set_model(self, model: BiLM) -> None:
        self._model = model.to(self._device)
        self.cache = LayerCache(self.settings.cache_mb, self.settings.cache_half)
        self._set_learning()

    @property
    def learns(self) -> bool:
        """Whether there are parameters that learn."""
        return not self.settings.frozen and self._n_learning != 0

    def let_learn(self, n_parts: int | None) -> None:
        """Let the topmost parts of the biLM learn; the rest is held.

        Args:
            n_parts: how many; the LSTM layers are one each, the token encoder is the last. None
                for all.
        """
        if n_parts != self._n_learning:
            self._n_learning = n_parts
            if self._model is not None:
                self._set_learning()

    def _set_learning(self) -> None:
        self._model.requires_grad_(False)
        if not self.settings.frozen:
            parts = [*reversed(self._model.lstm), self._model.token_encoder]
            for part in parts[: self._n_learning]:
                part.requires_grad_(True)
        for parameter in self._model.parameters():
            if not parameter.requires_grad:
                parameter.grad = None  # with a gradient of zeros, too, an optimizer would move it

    def check_language(self, lang: str) -> None:
        """Warn once if the weights are of another language than a pipeline."""
        of_weights = self.card.meta.get("lang")
        if self._warned_of_language or not lang or not of_weights or "xx" in (lang, of_weights):
            return
        if lang != of_weights:
            self._warned_of_language = True
            warnings.warn(
                f"The pipeline's language is '{lang}', but the ELMo weights "
                f"'{self.settings.weights}' were trained on '{of_weights}': their "
                f"vectors will be of little use. Set 'weights' in [components.elmo.model] to a "
                f"biLM of '{lang}', or train one with `python -m spacy elmo pretrain`.",
                UserWarning,
                stacklevel=2,
            )

    # What thinc asks of a shim, also before the biLM was needed:

    def finish_update(self, optimizer: Optimizer) -> None:
        if not self.settings.frozen and self._model is not None:
            with _slowed(optimizer, self.settings.learn_rate_factor):
                super().finish_update(optimizer)
            self._forget_what_was_read()

    @contextlib.contextmanager
    def use_params(self, params: dict[tuple[int, str], FloatsXd]) -> Iterator[None]:
        """For a while, the biLM has other weights, such as an optimizer's averages."""
        # `PyTorchShim` looks for keys that no optimizer writes.
        if self._model is None:
            yield
            return
        before = {
            name: parameter.data
            for name, parameter in self._model.named_parameters()
            if (self.id, name) in params
        }
        self._replace(
            {name: xp2torch(params[self.id, name], device=self.device) for name in before}
        )
        try:
            yield
        finally:
            self._replace(before)

    def _replace(self, parameters: dict[str, torch.Tensor]) -> None:
        if parameters:
            for name, value in parameters.items():
                self._model.get_parameter(name).data = value
            self._forget_what_was_read()

    def _forget_what_was_read(self) -> None:
        """The weights have changed in a way that PyTorch does not count."""
        self._model.word_cache.clear()
        self.cache.drop()

    def to_device(self, device_type: str, device_id: int) -> None:
        self._device = torch.device("cpu" if device_type == "cpu" else f"cuda:{device_id}")
        self.cache.drop()
        if self._model is not None:
            self._model.word_cache.clear()
            super().to_device(device_type, device_id)

    def copy(self) -> BiLMShim:
        """A shim of its own; a frozen biLM is shared, one that learns is copied."""
        copied = BiLMShim(self.settings)
        copied._config, copied._card = self._config, self._card
        copied._warned_of_language = self._warned_of_language
        copied._device = self._device
        if self._model is not None:
            copied._model, copied.cache = self._model, self.cache
            if not self.settings.frozen:
                copied._model = deepcopy(self._model)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> BiLMShim:
        return self.copy()

    def to_bytes(self) -> bytes:
        """The biLM with its state, config and card; it is loaded for that if it was not."""
        self.state()  # read the passage now: what is loaded again must not depend on it
        state = {
            "weights": bilm_weights.to_bytes(self.bilm),
            "config": self.config.to_dict(),
            "card": asdict(self.card),
        }
        return srsly.msgpack_dumps(state)

    def from_bytes(self, bytes_data: bytes) -> BiLMShim:
        state = srsly.msgpack_loads(bytes_data)
        config = BiLMConfig.from_dict(state["config"])
        self._set_config(config)
        self._card = Card(**state["card"])
        self._set_model(bilm_weights.from_bytes(config, state["weights"]))
        return self

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: the settings, and the biLM as bytes."""
        return {
            "settings": self.settings,
            "warned": self._warned_of_language,
            "bytes": self.to_bytes(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["settings"])  # type: ignore[misc]
        self._warned_of_language = state["warned"]
        self.from_bytes(state["bytes"])


@contextlib.contextmanager
def _slowed(optimizer: Optimizer, factor: float) -> Iterator[None]:
    """For a while, an optimizer has another learning rate.

    To scale gradients would not do: Adam makes steps of the same size of large and of small ones.
    """
    if factor == 1:
        yield
        return
    learn_rate = optimizer.learn_rate
    optimizer.learn_rate = learn_rate * factor
    try:
        yield
    finally:
        optimizer.learn_rate = learn_rate
