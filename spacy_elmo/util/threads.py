"""The number of threads that compute.

PyTorch computes a small product faster on one thread than on several, which wait for each other at
its end, and wait longest on a busy machine. So work is divided among texts or sentences instead:
each thread computes its own, on one processor.
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

from .workers import read_ahead

IMPORTING_PROCESS = os.getpid()
SMALL_PRODUCT = 2**23  # at most so many multiplications
MOST_THREADS = 8  # more threads would have few sentences each
# The user has set the number of PyTorch's threads.
IS_CHOSEN = any(map(os.environ.get, ("OMP_NUM_THREADS", "MKL_NUM_THREADS")))

T = TypeVar("T")
R = TypeVar("R")


class _ThreadState(local):
    default: int | None = None  # PyTorch's number of threads outside all `threads_for`
    most = sys.maxsize  # the `most` of the innermost `threads_for` that has one


_state = _ThreadState()


@contextmanager
def threads_for(work: float, setting: int | None = None, most: int | None = None) -> Iterator[None]:
    """Set PyTorch's number of threads for the calling thread, in a ``with`` block or a function.

    Products of up to `SMALL_PRODUCT` multiplications get one thread, larger ones PyTorch's number.

    Args:
        work: multiplications in a product.
        setting: the user's number. It takes precedence, except in worker processes, which have one
            thread.
        most: an upper limit, which also holds for every `threads_for` inside this one.
    """
    if os.getpid() != IMPORTING_PROCESS:
        # A product on several threads would wait forever for the parent's threads. The number is
        # not restored, because other code would wait too.
        torch.set_num_threads(1)
    before, state = torch.get_num_threads(), (_state.default, _state.most)
    _state.default, _state.most = _state.default or before, most or _state.most
    torch.set_num_threads(_choose(setting, 1 if work <= SMALL_PRODUCT else sys.maxsize))
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _state.default, _state.most = state


def worker_count(setting: int | None = None, most: int = MOST_THREADS) -> int:
    """How many threads, with one processor each, should share work.

    Args:
        setting: the user's number, see `threads_for`.
        most: an upper limit if the user has set none.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else most
    return _choose(setting, min(affinity, most))


def _choose(setting: int | None, most: int) -> int:
    """The user's number of threads; PyTorch's number, limited by ``most``, if there is none."""
    if os.getpid() != IMPORTING_PROCESS or multiprocessing.parent_process() is not None:
        return 1
    number = _state.default or torch.get_num_threads()
    return min(_state.most, setting or (number if IS_CHOSEN else min(number, most)))


def prefetch_map(
    function: Callable[[T], R], items: Iterable[T], n: int
) -> Iterator[tuple[T, Callable[[], R]]]:
    """Call a function for each item on n threads, at most n items ahead of the caller.

    The calling thread computes a lone item itself.

    Args:
        function: called with gradients enabled as they are here, and without autocast.
        items: the items, in any number.
        n: the number of threads; with 1, the calling thread computes each result when it asks for
            it.

    Yields:
        Each item in order, with a function that returns its result or raises its error.
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
        yield from read_ahead(((i, pool.submit(run, i).result) for i in chain(first, items)), n)
