"""Worker processes: how work is divided among them, and how they end."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from threading import Thread
from typing import Any, TypeVar

AHEAD = 2  # tasks in the queue for each process

T = TypeVar("T")


def map_in_processes(
    function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], n_process: int
) -> Iterator[T]:
    """The results of a function in the order of its tasks, computed by several processes.

    Args:
        function: defined at the top level of a module.
        tasks: the arguments of each call; a few at a time are read, so there may be any number.
        n_process: how many processes, at most one for each processor.

    Raises:
        ValueError: a process was killed.
    """
    n_process = min(n_process, os.cpu_count() or 1)
    with ProcessPoolExecutor(n_process, initializer=_start_worker) as pool:
        try:
            started = (pool.submit(function, *task) for task in tasks)
            yield from (future.result() for future in ahead(started, AHEAD * n_process))
        except BrokenProcessPool as error:
            raise ValueError(
                "A process was killed; perhaps there was not enough memory for all of them. Repeat "
                "the command (`elmo encode` with --resume), perhaps with another --n-process."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def ahead(items: Iterable[T], n: int) -> Iterator[T]:
    """Items of an iterator in order, read from it n items before they are used."""
    read: deque[T] = deque()
    for item in items:
        read.append(item)
        if len(read) > n:
            yield read.popleft()
    yield from read


def _start_worker() -> None:
    """Leave Ctrl-C to the parent process, and end with it, also if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent: Any = multiprocessing.parent_process()

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()
