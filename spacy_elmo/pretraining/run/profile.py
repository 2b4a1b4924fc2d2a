"""What a run will take, from a few steps taken for trial before it begins."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
import torch

from ...lm.batches import Batch
from ...lm.softmax import LogUniformSampler
from ..data.corpus import CorpusPosition
from ..learner import Learner
from .report import duration

TRIALS = 3
ADAM = 2  # numbers that the optimizer keeps for each one that learns


@dataclass
class Estimate:
    """What a run will take.

    Attributes:
        seconds: of a step.
        bytes: of memory, that of the GPU if there is one; None where it cannot be known.
    """

    seconds: float
    bytes: int | None

    def describe(self, n_steps: int, in_epoch: int | None) -> str:
        """One line on a run of so many steps, and of so many in an epoch if that is known."""
        parts = []
        if in_epoch is not None:
            parts.append(f"{duration(in_epoch * self.seconds)} for an epoch of {in_epoch:,} steps")
        parts.append(f"{duration(n_steps * self.seconds)} for {n_steps:,} steps")
        if self.bytes is not None:
            parts.append(f"{self.bytes / 2**20:,.0f} MB of memory")
        return f"About {', '.join(parts)}"


def rehearse(
    learner: Learner,
    batches: Iterator[tuple[Batch, CorpusPosition]],
    sampler: LogUniformSampler | None,
    n_parts: int,
    has_optimizer_state: bool,
) -> tuple[Estimate, Iterator[tuple[Batch, CorpusPosition]]]:
    """Take the first steps without learning from them; all processes have to.

    Args:
        learner: computes gradients, which are forgotten.
        batches: of the run.
        sampler: of candidates; None for the full softmax.
        n_parts: batches of a step.
        has_optimizer_state: the optimizer has its memory already.

    Returns:
        The estimate, and the batches from the first one on.
    """
    first = list(islice(batches, TRIALS * n_parts))
    carried = learner.loss.carried
    states = None if carried is None else {n: b.clone() for n, b in carried.named_buffers()}
    seconds = []
    for start in range(0, len(first), n_parts):
        began = time.monotonic()
        candidates = None if sampler is None else sampler.sample(np.random.default_rng(0))
        loss = learner.backward([part for part, _ in first[start : start + n_parts]], candidates)
        float(loss)  # a GPU has come to its end then
        learner.loss.zero_grad()
        seconds.append(time.monotonic() - began)
    if carried is not None and states is not None:
        carried.load_state_dict(states)
    learning = sum(p.numel() * p.element_size() for p in learner.loss.parameters())
    used = memory(learner.group.device)
    if used is not None and not has_optimizer_state:
        used += ADAM * learning
    # The first step sets up what the others use.
    return Estimate(statistics.median(seconds[1:]), used), chain(first, batches)


def memory(device: torch.device) -> int | None:
    """The most bytes of memory held so far, on a GPU or by this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    try:
        with open("/proc/self/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError):
        return None
