"""Worker processes: how they are started, and how many threads they compute with."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from threading import Thread
from typing import Any, TypeVar

import torch

IMPORTING_PROCESS = os.getpid()
AHEAD = 2  # tasks in the queue for each process

T = TypeVar("T")


def configure_worker() -> None:
    """Compute on one thread in a process that another one forked or started; call it before use.

    A process forked (`os.fork`, gunicorn's ``--preload``) from one that has run PyTorch on several
    threads waits forever for the threads that it did not inherit. Workers of `multiprocessing`,
    forked or not, would compete for the cores. The number of threads is set once in each process,
    so that it can be set otherwise later.
    """
    _configure(os.getpid())


@lru_cache
def _configure(process: int) -> None:
    was_forked = process != IMPORTING_PROCESS
    if was_forked or multiprocessing.parent_process() is not None:
        if torch.get_num_threads() > 1:
            torch.set_num_threads(1)


def map_in_processes(
    function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], n_process: int
) -> Iterator[T]:
    """The results of a function in the order of its tasks, computed by several processes.

    Args:
        function: defined at the top level of a module.
        tasks: the arguments of each call; a few at a time are read, so there may be any number.
        n_process: how many processes.

    Raises:
        ValueError: a process was killed.
    """
    queue: deque[Future[T]] = deque()
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
