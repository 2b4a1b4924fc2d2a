"""What the component predicts for Docs, long ones part by part: few layers are in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from ..text.segments import Part, chunks, doc_parts
from .bilm_shim import BiLMShim

PASSES = 4  # of the biLM at a time: sentences of similar length are read together
MAX_BYTES = 2**26  # of their layers
FLOAT32_BYTES = 4


class Output(NamedTuple):
    """The component's predictions for one Doc.

    Attributes:
        tensor: mixed vectors ``(n_tokens, 2P)``.
        layers: all layers ``(L + 1, n_tokens, 2P)`` if they are stored or listened to.
        compared: the rows of a `Comparison`, if the weights have statistics.
    """

    tensor: Floats2d
    layers: Floats3d | None
    compared: np.ndarray | None


def tokens_at_once(shim: BiLMShim) -> int:
    """How many tokens to read before any result is used: those of several passes, if their layers
    are small. Among more sentences, more are of similar length, and a pass takes fewer steps.
    """
    settings, config = shim.settings, shim.config
    pass_bytes = settings.batch_words * (config.n_layers + 1) * config.width * FLOAT32_BYTES
    return settings.batch_words * max(1, min(PASSES, MAX_BYTES // pass_bytes))


def predict_docs(docs: Sequence[Doc], model: Model, with_layers: bool) -> list[Output]:
    """Run a component's model over Docs.

    Args:
        docs: the Docs.
        model: `spacy-elmo.Elmo.v1`.
        with_layers: put the layers into the outputs.

    Returns:
        An output for each Doc.
    """
    shim: Any = model.get_ref("bilm").shims[0]
    settings, n_tokens = shim.settings, tokens_at_once(shim)
    parts = (
        part
        for doc in docs
        for part in doc_parts(doc, settings.segments, settings.max_words, n_tokens)
    )
    outputs: list[Output] = []
    for group in chunks(parts, n_tokens, n_tokens):
        _predict_parts(group, model, with_layers, outputs)
    return outputs


def _predict_parts(
    parts: Sequence[Part], model: Model, with_layers: bool, outputs: list[Output]
) -> None:
    """Add the rows of parts to the last output, or further outputs."""
    bilm, mix = model.get_ref("bilm"), model.get_ref("mix")
    layers: list[Any] = bilm.predict(parts)
    comparison = bilm.shims[0].comparison  # type: ignore[attr-defined]
    for part, own, vectors in zip(parts, layers, mix.predict(layers), strict=True):
        if part.start == 0:
            tensor: Any = vectors
            # A copy if they are part of a batch's, all of which would stay in memory.
            stored = mix.ops.xp.ascontiguousarray(own) if with_layers and part.is_whole else None
            if not part.is_whole:
                n_layers, _, width = own.shape
                tensor = mix.ops.alloc2f(len(part.doc), width)
                stored = mix.ops.alloc3f(n_layers, len(part.doc), width) if with_layers else None
            rows = None if comparison is None else comparison.empty_rows(part.doc)
            outputs.append(Output(tensor, stored, rows))
        output: Any = outputs[-1]
        if not part.is_whole:
            output.tensor[part.start : part.end] = vectors
            if with_layers:
                output.layers[:, part.start : part.end] = own
        if comparison is not None:
            comparison.add_rows(output.compared, part, own)
