"""The biLM in thinc's own PyTorchWrapper: Docs in, all layers of their tokens out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, PyTorchWrapper, torch2xp, xp2torch
from thinc.types import Floats3d

from ..text.segments import DocPart, doc_parts
from ..util.threads import threads_for
from .bilm_shim import BiLMShim, EncodedDoc
from .settings import BiLMSettings

NAME = "elmo-bilm"


def BiLMLayer(settings: BiLMSettings) -> Model[list[Doc], list[Floats3d]]:
    """All layers ``(L + 1, n_tokens, 2P)`` of each Doc; the rows of whitespace tokens are zeros.

    Opens no file: the weights are loaded at the first Doc with words.
    """
    model = PyTorchWrapper(None, convert_inputs=convert_inputs, convert_outputs=convert_outputs)
    model.name = NAME
    model.shims[0] = BiLMShim(settings)
    return model


def convert_inputs(
    model: Model, docs: Sequence[Doc | DocPart], is_train: bool
) -> tuple[ArgsKwargs, Callable[[Any], Sequence[Doc | DocPart]]]:
    """The windows of each Doc, which the biLM reads. Docs get no gradient: they come back.

    A `DocPart` of a Doc can take the place of one.
    """
    shim = cast(BiLMShim, model.shims[0])
    segments, max_words = shim.settings.segments, shim.settings.max_words
    parts = [
        doc if isinstance(doc, DocPart) else next(doc_parts(doc, segments, max_words, 1 + len(doc)))
        for doc in docs
    ]
    read = [part.windows for part in parts]
    if any(read):
        shim.check_language(parts[0].doc.vocab.lang)
    return ArgsKwargs(args=(read,), kwargs={}), lambda d_windows: docs


@threads_for(0)
def convert_outputs(
    model: Model, docs_encoded: tuple[Sequence[Doc | DocPart], list[EncodedDoc]], is_train: bool
) -> tuple[list[Floats3d], Callable[[list[Floats3d]], ArgsKwargs]]:
    """Put the layers of windows in the rows of their tokens, and gradients back."""
    docs, encoded = docs_encoded
    shim = cast(BiLMShim, model.shims[0])
    shape = shim.config.depth, shim.config.width
    outputs = []
    for doc, windows in zip(docs, encoded, strict=True):
        if not is_train and not shim.cache.is_on and _is_whole(windows, len(doc)):
            output = windows[0][1]  # no copy, unless they may be the cache's own
        else:
            output = torch.zeros(shape[0], len(doc), shape[1], device=shim.device)
            for window, layers in windows:
                output[:, window.rows] = layers[:, window.used].detach()
        if not is_train:
            windows.clear()  # a batch's layers are freed with the last of its Docs
        outputs.append(cast(Floats3d, torch2xp(output)))

    @threads_for(0)
    def get_d_layers(d_outputs: list[Floats3d]) -> ArgsKwargs:
        every, gradients = [], []
        for d_output, windows in zip(d_outputs, encoded, strict=True):
            for window, layers in windows:
                if layers.requires_grad:
                    gradient = torch.zeros_like(layers)
                    rows = xp2torch(d_output, device=shim.device)[:, window.rows]
                    gradient[:, window.used] = rows
                    every.append(layers)
                    gradients.append(gradient)
        return ArgsKwargs(args=(every,), kwargs={"grad_tensors": gradients})

    return outputs, get_d_layers


def _is_whole(windows: EncodedDoc, n_tokens: int) -> bool:
    """Return whether one window has all tokens and nothing else."""
    return len(windows) == 1 and len(windows[0][0].tokens) == windows[0][1].shape[1] == n_tokens
