"""Worker processes: how they share work, and how they end."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event
from threading import Thread
from typing import Any, TypeVar

QUEUED = 2  # tasks for each process, beside the one that it computes

T = TypeVar("T")


def map_in_processes(
    function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], n_process: int
) -> Iterator[T]:
    """Call a function for each task, in several processes.

    Args:
        function: a function at the top level of a module.
        tasks: tuples of arguments; few are read ahead, so there may be any number of them.
        n_process: the number of processes; at most one for each processor is started.

    Yields:
        The results, in the order of the tasks.

    Raises:
        ValueError: a process was killed; or none has started, as in a script without a main guard.
    """
    n_process = min(n_process, os.cpu_count() or 1)
    has_started = multiprocessing.Event()
    with ProcessPoolExecutor(n_process, None, _start_worker, (has_started,)) as pool:

        def submit(task: tuple[Any, ...]) -> Future[T]:
            try:
                return pool.submit(function, *task)
            except (EOFError, ConnectionError) as error:  # multiprocessing's fork server was killed
                raise BrokenProcessPool from error

        try:
            for future in read_ahead(map(submit, tasks), QUEUED * n_process):
                yield future.result()
        except BrokenProcessPool as error:
            if multiprocessing.get_start_method() != "fork" and not has_started.is_set():
                raise ValueError(
                    "No process has started: each imports the script that is run, which must start "
                    "them below `if __name__ == '__main__':`, its main guard. If it does, see what "
                    "the processes have printed above; perhaps there was not enough memory."
                ) from error
            raise ValueError(
                "A process was killed; perhaps there was not enough memory for all of them. Repeat "
                "the command (`elmo encode` with --resume), perhaps with another --n-process."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def read_ahead(items: Iterable[T], n: int) -> Iterator[T]:
    """Pass items on in order, but read n of them ahead."""
    waiting: deque[T] = deque()
    for item in items:
        waiting.append(item)
        if len(waiting) > n:
            yield waiting.popleft()
    yield from waiting


def _start_worker(has_started: Event) -> None:
    """Let the parent process handle Ctrl-C, and end with it, also if it is killed.

    SIGTERM ends the process: the handler that a fork copies from the parent might not.
    """
    has_started.set()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent: Any = multiprocessing.parent_process()

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()
