"""Ragged sentences as one sequence of shrinking time steps, for both directions at once.

The sentences are sorted by length, longest first. Step t then holds the sentences that are
longer than t, always the first rows of the step before, and no padding is ever computed.
The backward direction reads each sentence reversed within its own length, so it has the same
steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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

    Attributes:
        order: ``(n_sentences,)`` the sentences, longest first (ties keep their order).
        batch_sizes: sentences in each step, falling.
        mean_size: their mean.
        source: ``(2, N)`` for each direction and packed index, the flat index.
        target: ``(2, N)`` the inverse: for each flat index, the packed index.
        previous: ``(N − n_sentences,)`` for each packed index after step 0, the packed index
            of the same sentence one step before.
    """

    def __init__(self, lengths: Sequence[int], device: torch.device | str = "cpu"):
        sizes = np.asarray(lengths, dtype=np.int64)
        if len(sizes) == 0 or sizes.min() < 1:
            raise ValueError("A batch needs at least one sentence, each of one token or more.")
        order = np.argsort(-sizes, kind="stable")
        starts = np.cumsum(sizes) - sizes
        sorted_sizes, sorted_starts = sizes[order], starts[order]
        n_steps = int(sorted_sizes[0])
        # batch_sizes[t] = how many sentences are longer than t
        batch_sizes = len(sizes) - np.searchsorted(
            sorted_sizes[::-1], np.arange(n_steps), side="right"
        )
        steps = np.repeat(np.arange(n_steps), batch_sizes)
        step_starts = np.cumsum(batch_sizes) - batch_sizes
        rows = np.arange(len(steps)) - step_starts[steps]
        forward = sorted_starts[rows] + steps
        backward = sorted_starts[rows] + sorted_sizes[rows] - 1 - steps
        source = np.stack([forward, backward])
        target = np.empty_like(source)
        np.put_along_axis(target, source, np.arange(source.shape[1])[None], axis=1)
        later = steps > 0
        previous = step_starts[steps[later] - 1] + rows[later]

        self.n_sentences = len(sizes)
        self.mean_size = len(steps) / n_steps
        self.batch_sizes: list[int] = batch_sizes.tolist()
        self.order = to_device(order, device)
        self.source = to_device(source, device)
        self.target = to_device(target, device)
        self.previous = to_device(previous, device)

    def steps(self) -> list[tuple[int, int]]:
        """``(first packed index, number of sentences)`` of each step."""
        start, steps = 0, []
        for size in self.batch_sizes:
            steps.append((start, size))
            start += size
        return steps

    def stretches(self, n_tokens: int) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
        """Steps in stretches of at most ``n_tokens`` tokens, of one step at least.

        Yields:
            First packed index of a stretch, the one after its last, and its `steps`.
        """
        steps: list[tuple[int, int]] = []
        for start, size in self.steps():
            if steps and start + size - steps[0][0] > n_tokens:
                yield steps[0][0], start, steps
                steps = []
            steps.append((start, size))
        yield steps[0][0], sum(steps[-1]), steps


def unpack(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """A packed layer ``(2, N, P)`` as ``(n, 2P)``: the tokens at packed indices ``(2, n)``."""
    return torch.cat([x[0][target[0]], x[1][target[1]]], dim=1)


def by_sentence(
    layers: Iterator[torch.Tensor], n_layers: int, packing: Packing, lengths: Sequence[int]
) -> list[torch.Tensor]:
    """Packed layers of a batch as ``(L + 1, n_words, 2P)`` of each sentence, without boundaries.

    ``n_layers`` is L, as in the config. All are parts of one tensor. Without gradients, each layer
    goes there once it is computed.
    """
    ends = np.cumsum(lengths)
    words = np.delete(np.arange(ends[-1]), [ends - lengths, ends - 1])
    target = packing.target[:, to_device(words, packing.target.device)]
    if torch.is_grad_enabled():
        block = torch.stack([unpack(x, target) for x in layers])
    else:
        for j, x in enumerate(layers):
            if j == 0:
                block = x.new_empty(n_layers + 1, target.shape[1], 2 * x.shape[2])
            for each, rows, half in zip(x, target, block[j].chunk(2, dim=1), strict=True):
                torch.index_select(each, 0, rows, out=half)
    return list(block.split([n - 2 for n in lengths], dim=1))
