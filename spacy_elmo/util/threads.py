"""How many threads compute.

Small products run on one thread, for several inside one wait for each other at its end, which takes
longer than it saves, and much longer where others use the processors. Work is divided between texts
or sentences instead, among threads that compute on one processor each.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from threading import local
from typing import TypeVar

import torch

from .workers import ahead

IMPORTING_PROCESS = os.getpid()
SMALL_PRODUCT = 2**23  # multiplications at most
MOST_THREADS = 8  # more would read few sentences each
IS_CHOSEN = any(map(os.environ.get, ("OMP_NUM_THREADS", "MKL_NUM_THREADS")))  # PyTorch's number

T = TypeVar("T")
R = TypeVar("R")


class _Thread(local):
    number: int | None = None  # PyTorch's number outside of the passes of this thread
    most = sys.maxsize  # that its passes take


_here = _Thread()


@contextmanager
def threads_for(work: float, setting: int | None = None, most: int | None = None) -> Iterator[None]:
    """A context, or decorator, in which the calling thread computes a pass.

    Products of up to `SMALL_PRODUCT` multiplications take one thread, larger ones PyTorch's number,
    also in a pass inside another.

    Args:
        work: multiplications of a product.
        setting: the user's number, which wins, but not in worker processes: they have one thread.
        most: threads that this pass and those inside it take, whatever the user's number is.
    """
    if os.getpid() != IMPORTING_PROCESS:
        # The first product on several threads would wait forever for the parent's. For good: other
        # code would wait for them, too.
        torch.set_num_threads(1)
    before, outside = torch.get_num_threads(), (_here.number, _here.most)
    _here.number, _here.most = _here.number or before, most or _here.most
    torch.set_num_threads(_choose(setting, 1 if work <= SMALL_PRODUCT else sys.maxsize))
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _here.number, _here.most = outside


def steady_threads(setting: int | None = None, most: int = MOST_THREADS) -> int:
    """How many threads, of one processor each, may share work.

    Args:
        setting: see `threads_for`.
        most: if the user has chosen none.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else most
    return _choose(setting, min(affinity, most))


def _choose(setting: int | None, most: int) -> int:
    """The user's number of threads; PyTorch's, up to ``most``, if none was chosen."""
    if os.getpid() != IMPORTING_PROCESS or multiprocessing.parent_process() is not None:
        return 1
    number = _here.number or torch.get_num_threads()
    return min(_here.most, setting or (number if IS_CHOSEN else min(number, most)))


def results_ahead(
    function: Callable[[T], R], items: Iterable[T], n: int
) -> Iterator[tuple[T, Callable[[], R]]]:
    """Items in order, each with a function that returns the result for it, or raises its error.

    Results are computed by n threads on a processor each, for at most n items ahead of the one
    that is used. A lone item is left to the calling thread.

    Args:
        function, items: see above. Gradients are enabled as they are here; autocast is not.
        n: threads; 1 to compute each result when it is asked for.
    """
    items = iter(items)
    first = [] if n == 1 else [*islice(items, 2)]
    if len(first) < 2:
        yield from ((item, partial(function, item)) for item in chain(first, items))
        return
    is_inference, is_grad = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def run(item: T) -> R:
        with (
            threads_for(0, most=1),
            torch.inference_mode(is_inference),
            torch.set_grad_enabled(is_grad),
        ):
            return function(item)

    with ThreadPoolExecutor(n, "spacy_elmo") as pool:
        yield from ahead(((i, pool.submit(run, i).result) for i in chain(first, items)), n)
