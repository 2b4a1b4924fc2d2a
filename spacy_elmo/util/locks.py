"""Locks: of threads that share a biLM, and of processes, by files.

A process forked meanwhile finds those of threads free. A child has only the thread that forked it:
a lock that another thread held would stay locked there forever, and what it protects could be half
changed. So a fork waits until both are free.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import RLock

LOADING = RLock()  # while weights are loaded; threads that need both take it first
CACHES = RLock()  # while the entries of any cache are read or changed, not while they are computed


def _acquire() -> None:
    LOADING.acquire()
    CACHES.acquire()


def _release() -> None:
    CACHES.release()
    LOADING.release()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing is forked
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[bool | None]:
    """Lock a file or a directory; the lock ends with the process at the latest.

    Yields:
        Whether it is locked; False if another process has locked it. None where it is not there,
        and on Windows and some network file systems, which cannot do that: they keep what killed
        processes leave, and nobody waits.
    """
    is_locked: bool | None = None
    with ExitStack() as stack:
        with suppress(ImportError, OSError):
            import fcntl

            file = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
            stack.callback(os.close, file)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                is_locked = True
                # Closed alone, it would last in forked processes.
                stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
            except BlockingIOError:
                is_locked = False
        yield is_locked
