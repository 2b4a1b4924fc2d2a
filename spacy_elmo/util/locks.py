"""Locks of threads that share a biLM.

A process forked meanwhile finds those of threads free. A child has only the thread that forked it:
a lock that another thread held would stay locked there forever, and what it protects could be half
changed. So a fork waits until both are free.
"""

from __future__ import annotations

import os
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
