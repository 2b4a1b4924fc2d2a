"""Ragged sentences as one sequence of shrinking time steps, for both directions at once.

The sentences are sorted by length, longest first. Step t then holds the sentences that are
longer than t, always the first rows of the step before, and no padding is ever computed.
The backward direction reads each sentence reversed within its own length, so it has the same
steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch


def to_device(array: np.ndarray, device: torch.device | str) -> torch.Tensor:
    """An array as a tensor on a device; copied to a GPU without waiting for it."""
    tensor = torch.from_numpy(array)
    if torch.device(device).type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


class Packing:
    """The packed order of a batch of sentences that are concatenated in a flat array.

    Args:
        lengths: of one sentence at least, each of one token or more.
        device: of the tensors.

    Attributes:
        order: ``(n_sentences,)`` the sentences, longest first (ties keep their order).
        batch_sizes: sentences in each step, falling.
        steps: ``(first packed index, number of sentences)`` of each step.
        source: ``(2, N)`` for each direction and packed index, the flat index.
        target: ``(2, N)`` the inverse: for each flat index, the packed index.
        previous: ``(N − n_sentences,)`` for each packed index after step 0, the packed index
            of the same sentence one step before.
    """

    def __init__(self, lengths: Sequence[int], device: torch.device | str = "cpu"):
        sizes = np.asarray(lengths, dtype=np.int64)
        order = np.argsort(-sizes, kind="stable")
        starts = np.cumsum(sizes) - sizes
        times: np.ndarray = np.arange(sizes.max())
        # batch_sizes[t] = how many sentences are longer than t
        batch_sizes = len(sizes) - np.searchsorted(np.sort(sizes), times, side="right")
        step_starts = np.cumsum(batch_sizes) - batch_sizes
        t = np.repeat(times, batch_sizes)  # of each packed index
        packed = np.arange(len(t))
        sentence = order[packed - step_starts[t]]
        forward, backward = starts[sentence] + t, starts[sentence] + sizes[sentence] - 1 - t
        source = np.stack([forward, backward])
        previous = packed[len(sizes) :] - np.repeat(batch_sizes[:-1], batch_sizes[1:])

        self.batch_sizes: list[int] = batch_sizes.tolist()
        self.steps = list(zip(step_starts.tolist(), self.batch_sizes, strict=True))
        self.order = to_device(order, device)
        self.source = to_device(source, device)
        self.target = to_device(np.argsort(source, axis=1), device)
        self.previous = to_device(previous, device)

    def unpack(self, x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """A packed layer ``(2, N, P)`` as that of the flat array, ``(N, 2P)``."""
        return torch.cat([x[0][self.target[0]], x[1][self.target[1]]], dim=1, out=out)
