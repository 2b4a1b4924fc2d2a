"""Time and memory of a run, measured on a few steps before it begins."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

import torch

from ...lm.batches import Batch
from ...progress import duration
from ..data.corpus import CorpusPosition
from ..step import TrainState, train_step

N_STEPS = 3
ADAM = 2  # values that the optimizer stores for each weight


@dataclass(frozen=True)
class Profile:
    """What the steps of a run take.

    Attributes:
        seconds: of a step.
        bytes: of memory, the GPU's if there is one; None if unknown.
    """

    seconds: float
    bytes: int | None

    def describe(self, n_steps: int, epoch_steps: int | None) -> str:
        """One line on so many steps, and on an epoch if its number of steps is known."""
        parts = [f"{duration(n_steps * self.seconds)} for {n_steps:,} steps"]
        if epoch_steps is not None:
            time = duration(epoch_steps * self.seconds)
            parts.insert(0, f"{time} for an epoch of {epoch_steps:,} steps")
        if self.bytes is not None:
            parts.append(f"{self.bytes / 2**20:,.0f} MB of memory")
        return f"About {', '.join(parts)}"


def profile_steps(
    state: TrainState, batches: Iterator[tuple[Batch, CorpusPosition]]
) -> tuple[Profile, Iterator[tuple[Batch, CorpusPosition]]]:
    """Run the first steps without updating the weights, on all ranks.

    Args:
        state: stays as it is.
        batches: of the run.

    Returns:
        The profile, and the batches again from the first one.
    """
    n_parts = state.settings.accumulate_gradient
    first = list(islice(batches, N_STEPS * n_parts))
    streams = None if state.streams is None else state.streams.state_dict()
    before = {name: tensor.clone() for name, tensor in (streams or {}).items()}
    seconds = []
    for start in range(0, len(first), n_parts):
        began = time.monotonic()
        parts = [part for part, _ in first[start : start + n_parts]]
        float(train_step(state, parts, update=False))  # waits for the GPU
        state.loss.zero_grad()
        seconds.append(time.monotonic() - began)
    if state.streams is not None:
        state.streams.load_state_dict(before)
    used = peak_memory(state.group.device)
    if used is not None and not state.optimizer.state:
        used += ADAM * sum(p.numel() * p.element_size() for p in state.parameters)
    # The first step sets up what the others use.
    return Profile(statistics.median(seconds[1:]), used), chain(first, batches)


def peak_memory(device: torch.device) -> int | None:
    """The most memory used so far in bytes, on the GPU or by this process; None if unknown."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    try:
        with open("/proc/self/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError):
        return None
