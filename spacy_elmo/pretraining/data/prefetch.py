"""Batches made by a thread while the GPU works on earlier ones."""

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
POLL_SECONDS = 0.1  # how often a waiting thread checks whether it should stop

T = TypeVar("T")


@contextmanager
def batches_for(
    batches: Iterator[tuple[Batch, CorpusPosition]], device: torch.device
) -> Iterator[Iterator[tuple[Batch, CorpusPosition]]]:
    """A context in which batches are read: ahead for a GPU, on demand for the CPU.

    Each comes with its position, so that a resumed run loses none of those read ahead.
    """
    if device.type == "cuda":
        with prefetch(_pinned(batches, device)) as ahead:
            yield ahead
    else:
        yield batches


@contextmanager
def prefetch(items: Iterable[T], n_ahead: int = N_AHEAD) -> Iterator[Iterator[T]]:
    """A context in which a thread reads items ahead; it ends with the context.

    Args:
        items: read in this thread only. An error there is raised where the item would be.
        n_ahead: how many may wait to be taken.
    """
    queue: Queue[tuple[T] | BaseException | None] = Queue(n_ahead)  # None: the end
    closed = threading.Event()

    def put(entry: tuple[T] | BaseException | None) -> None:
        while not closed.is_set():
            try:
                return queue.put(entry, timeout=POLL_SECONDS)
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
                entry = queue.get(timeout=POLL_SECONDS)  # with a timeout, Ctrl-C ends it
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
    """The batches in pinned memory, which is copied to the GPU asynchronously."""
    torch.cuda.set_device(device)  # of this thread, which would open the first GPU otherwise
    for batch, position in batches:
        yield batch.pin_memory(), position
