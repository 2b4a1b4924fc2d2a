"""The warm state, for biLMs that were trained without a reset between sentences."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from .model import BiLM, State

# Plain English prose, our own; one sentence a line, tokenised.
PASSAGE = Path(__file__).parent / "passage.txt"
N_STREAMS = 8  # of sentences


@torch.no_grad()
def compute_warm_state(model: BiLM, sentences: Sequence[Sequence[str]] | None = None) -> State:
    """The mean state of the two directions of each layer at the end of some sentences.

    The sentences are distributed over streams. In each stream a sentence starts from the state
    in which the one before it ended, boundaries included. The mean over the streams depends less
    on the last words of any of them.

    Args:
        model: a biLM of any mode, on any device.
        sentences: lists of words; the package's passage if None.

    Returns:
        h ``(L, 2, 1, P)`` and c ``(L, 2, 1, D)``.
    """
    if sentences is None:
        sentences = [line.split() for line in PASSAGE.read_text("utf-8").splitlines()]
    n_streams = min(N_STREAMS, len(sentences))
    # Exact, as it may be saved with the weights. Other threads may read with the model meanwhile:
    # the copy shares its weights, but has settings of its own.
    model = copy(model)
    model.training, model.precision = False, "float32"
    h, c = (part.repeat(1, 1, n_streams, 1) for part in model.initial_state("zero"))
    with torch.autocast(model.device.type, enabled=False):
        for start in range(0, len(sentences), n_streams):
            part = sentences[start : start + n_streams]
            n = len(part)
            _, (h[:, :, :n], c[:, :, :n]) = model.read(part, (h[:, :, :n], c[:, :, :n]))
    return h.mean(dim=2, keepdim=True), c.mean(dim=2, keepdim=True)
