"""The biLM as a thinc layer: Docs in, all layers of their tokens out."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats3d

from ..bilm.config import INITIAL_STATES
from ..bilm.model import versions
from .segments import SEGMENTS, Passage, passages
from .shim import BiLMShim, Settings


@dataclass(frozen=True)
class Reading:
    """How Docs are read; not serialized with the model, so a config can change it.

    Attributes:
        segments: see `segments.sentence_bounds`.
        max_words: words of the longest sequence read at once.
        batch_words: padded words of one forward pass.
    """

    segments: str
    max_words: int
    batch_words: int


def BiLMLayer(settings: Settings, reading: Reading) -> Model[list[Doc], list[Floats3d]]:
    """All layers ``(L + 1, n_tokens, 2P)`` of each Doc; the rows of whitespace tokens are zeros.

    Opens no file.

    Raises:
        ValueError: a setting is out of range.
    """
    for name, value, choices in [
        ("segments", reading.segments, SEGMENTS),
        ("initial_state", settings.initial_state, ("auto", *INITIAL_STATES)),
    ]:
        if value not in choices:
            known = ", ".join(f'"{choice}"' for choice in choices)
            raise ValueError(
                f"The elmo model's setting {name} = {value!r} is unknown; use {known}."
            )
    for name, number, least in [
        ("max_words", reading.max_words, 8),
        ("batch_words", reading.batch_words, 1),
        ("cache_mb", settings.cache_mb, 0),
    ]:
        if number < least:
            raise ValueError(
                f"The elmo model's setting {name} = {number} is too small; use at least {least}."
            )
    factor = settings.learn_rate_factor
    if factor <= 0:
        raise ValueError(
            f"The elmo model's setting learn_rate_factor = {factor} is out of range; use a number "
            f"above 0 (frozen = true lets the biLM not learn)."
        )
    if settings.frozen and factor != 1:
        raise ValueError(
            f"The elmo model's setting learn_rate_factor = {factor} has no effect, because the "
            f"biLM is frozen. Set frozen = false, or remove it."
        )
    if settings.cache_half and not (settings.frozen and settings.cache_mb):
        raise ValueError(
            "The elmo model's setting cache_half = true has no effect, because nothing is cached: "
            "set frozen = true and cache_mb above 0, or remove it."
        )
    return Model(
        "elmo-bilm",
        forward,
        shims=[BiLMShim(settings)],
        attrs={"reading": reading},
    )


def forward(
    model: Model[list[Doc], list[Floats3d]], docs: list[Doc], is_train: bool
) -> tuple[list[Floats3d], Callable[[list[Floats3d]], list[Doc]]]:
    shim: BiLMShim = model.shims[0]  # type: ignore[assignment]
    reading: Reading = model.attrs["reading"]
    n_layers, width = shim.config.n_layers + 1, shim.config.width
    if not any(len(doc) for doc in docs):  # no weights are needed for that
        return [model.ops.alloc3f(n_layers, 0, width) for _ in docs], lambda dY: docs
    settle_in_workers(os.getpid())
    shim.check_language(docs[0].vocab.lang)
    learns = is_train and shim.learns
    bilm = shim.bilm.train(learns)
    if is_train and shim.settings.frozen:
        shim.cache.keep()
    read: list[tuple[int, Passage]] = [
        (i, passage)
        for i, doc in enumerate(docs)
        for passage in passages(doc, reading.segments, reading.max_words)
    ]
    with torch.set_grad_enabled(learns):
        layers = _read(shim, [passage.words for _, passage in read], reading.batch_words, learns)
    outputs = [torch.zeros(n_layers, len(doc), width, device=bilm.device) for doc in docs]
    for (i, passage), part in zip(read, layers, strict=True):
        kept = part[:, passage.first : passage.first + len(passage.tokens)]
        outputs[i][:, _places(passage.tokens)] = kept.detach()

    def backprop(dY: list[Floats3d]) -> list[Doc]:
        if learns and read:
            gradients = []
            for (i, passage), part in zip(read, layers, strict=True):
                gradient = torch.zeros_like(part)
                kept = slice(passage.first, passage.first + len(passage.tokens))
                gradient[:, kept] = xp2torch(dY[i], device=bilm.device)[:, _places(passage.tokens)]
                gradients.append(gradient)
            torch.autograd.backward(layers, gradients)
        return docs

    return [cast(Floats3d, torch2xp(output)) for output in outputs], backprop


def _read(
    shim: BiLMShim, sentences: Sequence[Sequence[str]], batch_words: int, learns: bool
) -> list[torch.Tensor]:
    """Layers ``(L + 1, n_words, 2P)`` of each sentence, from the cache where they are there."""
    if learns or not shim.cache.is_on:
        return shim.bilm.read(sentences, shim.state(), batch_words)[0]
    shim.cache.check(versions(shim.bilm))
    found = [shim.cache.get(words) for words in sentences]
    new = [place for place, layers in enumerate(found) if layers is None]
    read, _ = shim.bilm.read([sentences[place] for place in new], shim.state(), batch_words)
    for place, layers in zip(new, read, strict=True):
        shim.cache.put(sentences[place], layers)
        found[place] = layers
    return cast(list[torch.Tensor], found)


def _places(tokens: np.ndarray) -> slice | torch.Tensor:
    """Token indices as a slice where they have no gaps, which is usual and faster."""
    if tokens[-1] - tokens[0] + 1 == len(tokens):
        return slice(int(tokens[0]), int(tokens[-1]) + 1)
    return torch.from_numpy(tokens)


@lru_cache
def settle_in_workers(process: int) -> None:
    """What a process has to mind that another one started, such as those of ``n_process``.

    It computes on one thread: a child forked after its parent has used several would wait for
    ever for the threads that it did not inherit, and workers should not compete for the cores.
    And it sends its Docs back as bytes, without the vector hooks, of which spaCy would warn for
    every Doc.

    Args:
        process: its number; all this is done once in each.
    """
    if multiprocessing.parent_process() is None:
        return
    if torch.get_num_threads() > 1:
        torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message=r"\[W109\]")
