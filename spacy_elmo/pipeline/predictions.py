"""The component's predictions, long Docs part by part: few layers are in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc
from thinc.api import Model, get_array_module
from thinc.types import Floats2d, Floats3d

from ..text.segments import DocPart, chunks, doc_parts
from .bilm_layer import BiLMShim
from .similarity import ComparedRows

PASSES = 4  # of the biLM at a time: sentences of similar length are read together
MAX_BYTES = 2**26  # of their layers
FLOAT32_BYTES = 4


class Output(NamedTuple):
    """The component's predictions for one Doc.

    Attributes:
        tensor: mixed vectors ``(n_tokens, 2P)``.
        layers: all layers ``(L + 1, n_tokens, 2P)`` if they are stored or listened to.
        compared: what vectors are compared by, if the weights have statistics.
    """

    tensor: Floats2d
    layers: Floats3d | None
    compared: ComparedRows | None


def tokens_at_once(shim: BiLMShim) -> int:
    """Return the number of tokens to read together: up to `PASSES` passes, as far as their layers
    fit into `MAX_BYTES`. With more sentences to choose from, those of a pass are closer in length,
    and it takes fewer steps."""
    settings, config = shim.settings, shim.config
    pass_bytes = settings.batch_words * config.depth * config.width * FLOAT32_BYTES
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
    bilm, mix = model.get_ref("bilm"), model.get_ref("mix")
    shim: Any = bilm.shims[0]
    settings, n_tokens = shim.settings, tokens_at_once(shim)
    parts = (
        part
        for doc in docs
        for part in doc_parts(doc, settings.segments, settings.max_words, n_tokens)
    )
    outputs: list[Any] = []
    for group in chunks(parts, n_tokens, n_tokens):
        layers: list[Any] = bilm.predict(group)
        for part, own, vectors in zip(group, layers, mix.predict(layers), strict=True):
            if part.start == 0:
                outputs.append(_start(part, shim, own, vectors, with_layers))
            output = outputs[-1]
            if not part.is_whole:
                output.tensor[part.start : part.end] = vectors
                if with_layers:
                    output.layers[:, part.start : part.end] = own
            if output.compared is not None:
                output.compared.add(part, own)
    return outputs


def _start(part: DocPart, shim: BiLMShim, layers: Any, vectors: Any, with_layers: bool) -> Output:
    """The output of a Doc by its first part; empty arrays if that is not all of it."""
    compared = None if shim.comparison is None else ComparedRows(shim.comparison, part)
    xp: Any = get_array_module(layers)
    if part.is_whole:
        # A copy if they are part of a batch's, all of which would stay in memory.
        return Output(vectors, xp.ascontiguousarray(layers) if with_layers else None, compared)
    depth, _, width = layers.shape
    tensor = xp.zeros((len(part.doc), width), dtype="f")
    stored = xp.zeros((depth, *tensor.shape), dtype="f") if with_layers else None
    return Output(tensor, stored, compared)
