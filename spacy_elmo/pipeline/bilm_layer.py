"""The biLM in thinc's PyTorchWrapper: Docs in, layers out."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from itertools import chain
from threading import RLock
from typing import Any, cast

import torch
from spacy.tokens import Doc
from thinc.api import (
    ArgsKwargs,
    Model,
    Optimizer,
    PyTorchShim,
    PyTorchWrapper,
    get_torch_default_device,
)
from thinc.types import Floats3d
from torch import nn

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM, weights_version
from ..bilm.torch_precision import rounding, without_tf32
from ..text.segments import DocPart, doc_parts
from ..util.threads import threads_for
from ..weights import saved
from ..weights.find import find_weights
from ..weights.layout import Card
from ..weights.native import Weights
from ..weights.statistics import Statistics
from .layer_cache import LayerCache
from .settings import BiLMSettings

# How much is read together: what so many passes take, if the layers fit into so many bytes.
PASSES = 4
MAX_BYTES = 2**26
FLOAT32_BYTES = 4


def bilm_layer(settings: BiLMSettings) -> Model[list[Doc], list[Floats3d]]:
    """Maps each Doc to its layers, ``(L + 1, n_tokens, 2P)``. Whitespace tokens have zeros.

    The first Doc with words loads the weights; no file is opened here.
    """
    model = PyTorchWrapper(None, convert_inputs=convert_inputs)
    model.name = "elmo-bilm"
    model.shims[0] = BiLMShim(LazyBiLM(settings))
    del model._dims["nI"]  # Docs have no width, which `concatenate` would look for
    return model


def convert_inputs(
    model: Model, docs: Sequence[Doc | DocPart], is_train: bool
) -> tuple[ArgsKwargs, Callable[[Any], Sequence[Doc | DocPart]]]:
    """Convert Docs to `DocPart`s. Docs have no gradient, so backprop returns the Docs."""
    parts = cast(BiLMShim, model.shims[0]).bilm.split(docs)
    return ArgsKwargs(args=(parts,), kwargs={}), lambda d_parts: docs


class LazyBiLM(nn.Module):
    """A biLM with its settings in a pipeline, loaded at its first use.

    A deserialized biLM is another object.

    Args:
        settings: how the biLM is found, run and trained.

    Attributes:
        device: where the biLM computes.
        cache: the layers that a frozen biLM has computed, during a training.
        is_saved: the biLM came with a saved component, not from the setting ``weights``.
        has_learned: a training has changed the weights.
    """

    def __init__(self, settings: BiLMSettings):
        super().__init__()
        self.settings = settings
        # Now, because the thread that sends the first Doc may have another default.
        self.device = get_torch_default_device()
        self.cache = LayerCache(settings.cache_mb)
        self.is_saved = self.has_learned = False
        self._model: BiLM | None = None
        self._loading = RLock()

    @cached_property
    def _weights(self) -> Weights:
        """The weights that the setting names, until they are loaded."""
        return find_weights(self.settings.weights)

    @cached_property
    def config(self) -> BiLMConfig:
        """The biLM's shape; no tensor is read for it."""
        return self._fitting(self._weights.config())

    @cached_property
    def card(self) -> Card:
        """The name, language, licence and sources of the weights."""
        return self._weights.card()

    @cached_property
    def statistics(self) -> Statistics | None:
        """The statistics of the weights; None if they have none."""
        return self._weights.statistics()

    @cached_property
    def tokens_at_once(self) -> int:
        """How many tokens to read together: for `PASSES` passes, or fewer if their layers do not
        fit into `MAX_BYTES`. Among more sentences, those of a pass are closer in length."""
        n_words = self.settings.batch_words
        pass_bytes = n_words * self.config.depth * self.config.width * FLOAT32_BYTES
        return n_words * max(1, min(PASSES, MAX_BYTES // pass_bytes))

    @property
    def is_loaded(self) -> bool:
        return self._model is not None

    @property
    def model(self) -> BiLM:
        """The biLM; the first use loads it.

        Raises:
            ValueError: the weights are missing or damaged, or have another width than the setting.
        """
        if self._model is None:
            with self._loading, threads_for(0), torch.inference_mode(False):
                if self._model is None:  # no other thread has loaded it meanwhile
                    weights = self._weights
                    self.use_weights(weights.load(), weights.card(), weights.statistics())
                    del self._weights  # it may have the file of a saved component in memory
        assert self._model is not None
        return self._model

    def use_weights(self, model: BiLM, card: Card, statistics: Statistics | None) -> None:
        """Use a biLM that was read from a file or from bytes, as the settings say."""
        self.config, self.card, self.statistics = self._fitting(model.config), card, statistics
        model.n_threads = self.settings.threads
        self._model = model.to(self.device).requires_grad_(not self.settings.frozen)

    def _fitting(self, config: BiLMConfig) -> BiLMConfig:
        if self.settings.width not in (None, config.width):
            raise ValueError(
                f"The elmo model's setting width = {self.settings.width} does not fit the weights "
                f"'{self.settings.weights}': set it to {config.width}, or to null."
            )
        return config

    def split(self, docs: Iterable[Doc | DocPart], n_tokens: int = sys.maxsize) -> list[DocPart]:
        """Split Docs into sentences and windows, as the settings say.

        Args:
            docs: Docs; a `DocPart` stays as it is.
            n_tokens: size at which a part of a long Doc ends; by default each Doc is one part.
        """
        given = self.settings.segments, self.settings.max_words, n_tokens
        parts = ([it] if isinstance(it, DocPart) else doc_parts(it, *given) for it in docs)
        return [*chain.from_iterable(parts)]

    @threads_for(0)
    def forward(self, parts: Sequence[DocPart]) -> list[torch.Tensor]:
        """The layers ``(L + 1, n_tokens, 2P)`` of parts of Docs. With gradients enabled the biLM
        is in training mode, and the layers have a graph."""
        sentences = [window.words for part in parts for window in part.windows]
        layers: list[torch.Tensor] = []
        if sentences:  # else no weights are needed
            model, settings = self.model, self.settings
            if model.training != torch.is_grad_enabled():
                model.train(torch.is_grad_enabled())
            given = model.initial_state(settings.initial_state), settings.batch_words
            if self.cache.is_on and not model.training:
                version = weights_version(model), rounding(self.device)
                layers = self.cache.lookup(sentences, lambda s: model.read(s, *given)[0], version)
            else:
                layers, _ = model.read(sentences, *given)
        # Popped, because layers that were read together are freed together, with the last of them.
        layers.reverse()
        return [self._in_rows(part, [layers.pop() for _ in part.windows]) for part in parts]

    def _in_rows(self, part: DocPart, layers: list[torch.Tensor]) -> torch.Tensor:
        """The layers of a part, ``(L + 1, n_tokens, 2P)``, from the layers of its windows."""
        rows = part.windows[0].rows if len(layers) == 1 else None
        is_whole = isinstance(rows, slice) and rows == slice(0, len(part))
        if is_whole and layers[0].shape[1] == len(part) and not self.cache.is_on:
            return layers[0]  # the cache's own layers must be copied
        shape = self.config.depth, len(part), self.config.width
        output = torch.zeros(shape, dtype=torch.float32, device=self.device)
        for window, read in zip(part.windows, layers, strict=True):
            output[:, window.rows] = read[:, window.used]
        return output

    def train(self, mode: bool = True) -> LazyBiLM:
        """Do nothing. thinc's shim calls this around each pass, but threads may share the biLM:
        `forward` sets the mode, by whether gradients are enabled."""
        return self

    # Copies and serialization

    def unloaded_copy(self) -> LazyBiLM:
        """A copy with the same settings, which is not loaded."""
        new = LazyBiLM(self.settings)
        new.device = self.device
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> LazyBiLM:
        """A copy; it shares the weights in memory if they are frozen."""
        new = self.unloaded_copy()
        known = ("config", "card", "statistics", "is_saved", "has_learned")
        new.__dict__.update({name: vars(self)[name] for name in known if name in vars(self)})
        if self._model is not None and self.settings.frozen:
            new._model, new.cache = self._model.share_weights(), self.cache
        elif self._model is not None:
            new._model = deepcopy(self._model)
        return new

    def __reduce__(self) -> Any:
        return _unpickle, (self.settings, serialize(self))


def _unpickle(settings: BiLMSettings, data: bytes) -> LazyBiLM:
    return deserialize(LazyBiLM(settings), data)


def serialize(bilm: LazyBiLM) -> bytes:
    """Serialize the biLM with its initial state, config, card and statistics."""
    bilm.model.initial_state(bilm.settings.initial_state)  # computes a warm state
    return saved.to_bytes(bilm.model, bilm.card, bilm.statistics)


def deserialize(bilm: LazyBiLM, data: bytes, device: torch.device | None = None) -> LazyBiLM:
    """Load a biLM that was serialized.

    Args:
        bilm: a `LazyBiLM` with the settings for it; it stays as it is.
        data: from `serialize`.
        device: None for the device of ``bilm``.

    Raises:
        ValueError: the bytes are damaged.
    """
    model, card, statistics = saved.from_bytes(data)
    new = bilm.unloaded_copy()
    new.device = device or bilm.device
    new.use_weights(model, card, statistics)
    new.is_saved = True
    return new


class BiLMShim(PyTorchShim):
    """Runs, trains and serializes a `LazyBiLM` for thinc."""

    def __init__(self, bilm: LazyBiLM):
        super().__init__(
            bilm, device=bilm.device, serialize_model=serialize, deserialize_model=deserialize
        )

    @property
    def bilm(self) -> LazyBiLM:
        return self._model

    def reset(self) -> None:
        """Let a trained biLM be loaded again, unless it came with a saved component."""
        if self.bilm.has_learned and not self.bilm.is_saved:
            self._model = self.bilm.unloaded_copy()

    def begin_update(
        self, inputs: ArgsKwargs
    ) -> tuple[list[torch.Tensor], Callable[[ArgsKwargs], None]]:
        """Compute the layers of `DocPart`s, with a graph if the biLM is trained.

        Returns:
            The layers, and a callback that takes their gradients as ``grad_tensors``.
        """
        if self.bilm.settings.frozen:
            self.bilm.cache.begin()
            return self.predict(inputs), lambda d_layers: None
        with torch.enable_grad():
            layers = self.bilm(*inputs.args)
        n_windows = sum(len(part.windows) for part in inputs.args[0])

        def backprop(d_layers: ArgsKwargs) -> None:
            pairs = zip(layers, d_layers.kwargs["grad_tensors"], strict=True)
            learned = [(y, dy) for y, dy in pairs if y.requires_grad]
            if learned:  # Docs of whitespace have no graph
                outputs, gradients = zip(*learned, strict=True)
                work = n_windows * self.bilm.config.layer_size
                with threads_for(work, self.bilm.settings.threads), without_tf32(self.device):
                    torch.autograd.backward(outputs, gradients)

        return [y.detach() for y in layers], backprop

    def finish_update(self, optimizer: Optimizer) -> None:
        """Update the parameters, at ``learn_rate_factor`` times the learning rate.

        Scaling the gradients would not do: the size of Adam's steps does not depend on it.
        """
        if self.bilm.settings.frozen or not self.bilm.is_loaded:
            return
        learn_rate = getattr(optimizer, "learn_rate", 0.0)
        optimizer.learn_rate = learn_rate * self.bilm.settings.learn_rate_factor
        try:
            super().finish_update(optimizer)
        finally:
            optimizer.learn_rate = learn_rate
        self.bilm.has_learned = True
        config = self.bilm.model.config
        if config.int8:
            self.bilm.model.config = replace(config, int8=False)
            warnings.warn(
                f"The gates of '{self.bilm.settings.weights}' are no longer rounded to int8, since "
                f"the biLM was trained: it reads at the speed of float32. Set frozen = true if it "
                f"should not be trained.",
                UserWarning,
                stacklevel=2,
            )
        # PyTorch's version counters do not show that an optimizer has changed the weights.
        self.bilm.model.clear_caches()
        self.bilm.cache.clear()

    def to_device(self, device_type: str, device_id: int) -> None:
        self.bilm.device = torch.device("cpu" if device_type == "cpu" else f"cuda:{device_id}")
        self.bilm.cache = LayerCache(self.bilm.settings.cache_mb)
        self.bilm.to(self.bilm.device)

    def __deepcopy__(self, memo: dict[int, Any]) -> BiLMShim:
        """A new shim, whose parameters have other keys in an optimizer than this one's."""
        return BiLMShim(deepcopy(self.bilm))
