"""A state to start every sentence from, for biLMs that were trained with a carried one.

Such a biLM has hardly ever seen a state of zeros: each sentence began in the state in which
another one had ended. A warm state is like those, but always the same, so that a sentence's
vectors depend on that sentence alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from .model import BiLM, State

PASSAGE = Path(__file__).parent / "passage.txt"  # a sentence a line, tokenised
N_STREAMS = 8


@lru_cache
def passage() -> list[list[str]]:
    """The sentences that are read if no others are given: plain English prose, our own."""
    return [line.split() for line in PASSAGE.read_text(encoding="utf-8").splitlines()]


@torch.no_grad()
def warm_state(model: BiLM, sentences: Sequence[Sequence[str]] | None = None) -> State:
    """The mean state in which reading a passage leaves the two directions of each layer.

    The sentences are dealt out to streams; each stream is read with the state carried from one
    sentence to the next, boundaries included. A mean over streams holds less of what one of
    them happened to say last.

    Args:
        model: a biLM of any mode, on any device.
        sentences: words of each; the package's own passage if None.

    Returns:
        h ``(L, 2, 1, P)`` and c ``(L, 2, 1, D)``.
    """
    sentences = passage() if sentences is None else sentences
    n_streams = min(N_STREAMS, len(sentences))
    was_training = model.training
    model.eval()
    h, c = model.zero_state(n_streams)
    for start in range(0, len(sentences), n_streams):
        part = sentences[start : start + n_streams]
        n = len(part)
        _, (h[:, :, :n], c[:, :, :n]) = model.read(part, (h[:, :, :n], c[:, :, :n]))
    model.train(was_training)
    return h.mean(dim=2, keepdim=True), c.mean(dim=2, keepdim=True)
