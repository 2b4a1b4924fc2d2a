"""Time and memory of a run, estimated from its first steps."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import torch

from ...util.progress import duration

N_STEPS = 3


def describe_cost(
    seconds: Sequence[float], n_bytes: int | None, n_steps: int, epoch_steps: int | None
) -> str:
    """One line on what a run will take.

    Args:
        seconds: of its first steps; the very first sets up what the others use, and is ignored.
        n_bytes: of memory; None if unknown.
        n_steps: of the run.
        epoch_steps: of an epoch; None if unknown.
    """
    step_seconds = statistics.median(seconds[1:])
    parts = [f"{duration(n_steps * step_seconds)} for {n_steps:,} steps"]
    if epoch_steps is not None:
        time = duration(epoch_steps * step_seconds)
        parts.insert(0, f"{time} for an epoch of {epoch_steps:,} steps")
    if n_bytes is not None:
        parts.append(f"{n_bytes / 2**20:,.0f} MB of memory")
    return f"About {', '.join(parts)}"


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
