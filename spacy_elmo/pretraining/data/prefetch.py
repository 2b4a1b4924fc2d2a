"""Batches made by a thread while the GPU works on earlier ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

from ...lm.encoded_sentences import SentenceBatch
from .corpus import CorpusPosition

N_AHEAD = 4

T = TypeVar("T")


@contextmanager
def batches_for(
    batches: Iterator[tuple[SentenceBatch, CorpusPosition]], device: torch.device
) -> Iterator[Iterator[tuple[SentenceBatch, CorpusPosition]]]:
    """A context in which batches are read: ahead for a GPU, on demand for the CPU.

    Each comes with its position, so that a resumed run loses none of those read ahead.
    """
    if device.type == "cuda":
        with prefetch(_pinned(batches, device)) as ahead:
            yield ahead
    else:
        yield batches


@contextmanager
def prefetch(items: Iterator[T], n_ahead: int = N_AHEAD) -> Iterator[Iterator[T]]:
    """A context in which a thread reads items ahead; it ends with the context.

    Args:
        items: read in this thread only, none of them None. An error there is raised where the item
            would be.
        n_ahead: how many may wait to be taken.
    """
    waiting: deque[Future[T | None]] = deque()

    def take() -> Iterator[T]:
        while (item := waiting.popleft().result()) is not None:
            waiting.append(thread.submit(next, items, None))
            yield item

    with ThreadPoolExecutor(1, "prefetch") as thread:
        waiting.extend(thread.submit(next, items, None) for _ in range(n_ahead))
        try:
            yield take()
        finally:
            for future in waiting:
                future.cancel()


def _pinned(
    batches: Iterator[tuple[SentenceBatch, CorpusPosition]], device: torch.device
) -> Iterator[tuple[SentenceBatch, CorpusPosition]]:
    """The batches in pinned memory, which is copied to the GPU asynchronously."""
    torch.cuda.set_device(device)  # of this thread, which would open the first GPU otherwise
    for batch, position in batches:
        yield batch.pin_memory(), position
