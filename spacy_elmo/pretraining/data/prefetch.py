"""Batches made by a thread while the GPU is at work on those before."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from queue import Empty, Full, Queue
from typing import TypeVar

import torch

from ...lm.batches import Batch
from .corpus import CorpusPosition

N_AHEAD = 4
LOOK_SECONDS = 0.1  # how often a thread that waits sees whether it is needed no more

T = TypeVar("T")


@contextmanager
def reading(
    batches: Iterator[tuple[Batch, CorpusPosition]], device: torch.device
) -> Iterator[Iterator[tuple[Batch, CorpusPosition]]]:
    """A context in which batches are read: ahead for a GPU, else when they are asked for.

    Each comes with its place, so that a run that is resumed loses none of those read ahead.
    """
    if device.type == "cuda":
        with prefetched(_pinned(batches, device)) as ahead:
            yield ahead
    else:
        yield batches


@contextmanager
def prefetched(items: Iterable[T], n_ahead: int = N_AHEAD) -> Iterator[Iterator[T]]:
    """A context in which a thread reads items ahead; it ends with the context.

    Args:
        items: read in this thread alone. An error in there is raised where the item would be.
        n_ahead: how many wait to be taken at the most.
    """
    queue: Queue[tuple[T] | BaseException | None] = Queue(n_ahead)  # None: there are no more
    closed = threading.Event()

    def put(entry: tuple[T] | BaseException | None) -> None:
        while not closed.is_set():
            try:
                return queue.put(entry, timeout=LOOK_SECONDS)
            except Full:
                pass

    def read() -> None:
        try:
            for item in items:
                put((item,))
                if closed.is_set():
                    return
            put(None)
        except BaseException as error:
            put(error)

    def take() -> Iterator[T]:
        while True:
            try:
                entry = queue.get(timeout=LOOK_SECONDS)  # a wait that Ctrl-C can end
            except Empty:
                continue
            if entry is None:
                return
            if isinstance(entry, BaseException):
                raise entry
            yield entry[0]

    thread = threading.Thread(target=read, name="prefetch", daemon=True)
    thread.start()
    try:
        yield take()
    finally:
        closed.set()
        thread.join()


def _pinned(
    batches: Iterator[tuple[Batch, CorpusPosition]], device: torch.device
) -> Iterator[tuple[Batch, CorpusPosition]]:
    """The batches in memory from which the GPU takes them while the CPU goes on."""
    torch.cuda.set_device(device)  # of this thread, which would open the first GPU otherwise
    for batch, place in batches:
        yield batch.pin_memory(), place
