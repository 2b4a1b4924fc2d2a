"""Worker processes: how work is divided among them, and how they end."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
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
    queue: deque[Future[T]] = deque()
    n_process = min(n_process, os.cpu_count() or 1)
    with ProcessPoolExecutor(n_process, initializer=_start_worker) as pool:
        try:
            for task in tasks:
                queue.append(pool.submit(function, *task))
                if len(queue) == AHEAD * n_process:
                    yield queue.popleft().result()
            while queue:
                yield queue.popleft().result()
        except BrokenProcessPool as error:
            raise ValueError(
                "A process was killed; perhaps there was not enough memory for all of them. Repeat "
                "the command (`elmo encode` with --resume), perhaps with another --n-process."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    """Leave Ctrl-C to the parent process, and end with it, also if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()
