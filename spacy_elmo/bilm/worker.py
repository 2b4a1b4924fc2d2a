"""How many threads a worker process computes with."""

from __future__ import annotations

import multiprocessing
import os
from functools import lru_cache

import torch

IMPORTING_PROCESS = os.getpid()


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
