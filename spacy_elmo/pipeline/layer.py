"""The biLM in thinc's own PyTorchWrapper: Docs in, all layers of their tokens out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, PyTorchWrapper, torch2xp, xp2torch
from thinc.types import Floats3d

from .segments import doc_windows
from .settings import BiLMSettings
from .shim import BiLMShim, EncodedDoc

NAME = "elmo-bilm"


def BiLMLayer(settings: BiLMSettings) -> Model[list[Doc], list[Floats3d]]:
    """All layers ``(L + 1, n_tokens, 2P)`` of each Doc; the rows of whitespace tokens are zeros.

    Opens no file: the weights are loaded when the first Doc with words comes.
    """
    model = PyTorchWrapper(None, convert_inputs=convert_inputs, convert_outputs=convert_outputs)
    model.name = NAME
    model.shims[0] = BiLMShim(settings)
    return model


def convert_inputs(
    model: Model, docs: list[Doc], is_train: bool
) -> tuple[ArgsKwargs, Callable[[Any], list[Doc]]]:
    """The windows of each Doc, which the biLM reads. Docs get no gradient: they come back."""
    shim = cast(BiLMShim, model.shims[0])
    settings = shim.settings
    read = [list(doc_windows(doc, settings.segments, settings.max_words)) for doc in docs]
    if any(read):
        shim.check_language(docs[0].vocab.lang)
    return ArgsKwargs(args=(read,), kwargs={}), lambda d_windows: docs


def convert_outputs(
    model: Model, docs_encoded: tuple[list[Doc], list[EncodedDoc]], is_train: bool
) -> tuple[list[Floats3d], Callable[[list[Floats3d]], ArgsKwargs]]:
    """Put the layers of windows in the rows of their tokens, and gradients back."""
    docs, encoded = docs_encoded
    shim = cast(BiLMShim, model.shims[0])
    n_layers, width = shim.config.n_layers + 1, shim.config.width
    outputs = []
    for doc, parts in zip(docs, encoded, strict=True):
        output = torch.zeros(n_layers, len(doc), width, device=shim.device)
        for window, layers in parts:
            output[:, window.rows] = layers[:, window.used].detach()
        if not is_train:
            parts.clear()  # so that no more than one Doc's layers are in memory twice
        outputs.append(cast(Floats3d, torch2xp(output)))

    def get_d_layers(d_outputs: list[Floats3d]) -> ArgsKwargs:
        every, gradients = [], []
        for d_output, parts in zip(d_outputs, encoded, strict=True):
            for window, layers in parts:
                if layers.requires_grad:
                    gradient = torch.zeros_like(layers)
                    rows = xp2torch(d_output, device=shim.device)[:, window.rows]
                    gradient[:, window.used] = rows
                    every.append(layers)
                    gradients.append(gradient)
        return ArgsKwargs(args=(every,), kwargs={"grad_tensors": gradients})

    return outputs, get_d_layers
