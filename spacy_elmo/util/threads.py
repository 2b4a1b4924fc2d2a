"""How many threads compute.

Small products run on one thread, for several inside one wait for each other at its end, which takes
longer than it saves, and much longer where others use the processors. Work is divided between texts
or sentences instead, among threads that compute on one processor each.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain, islice
from threading import get_ident, local
from typing import TypeVar

import torch

IMPORTING_PROCESS = os.getpid()
SMALL_PRODUCT = 2**23  # multiplications at most
MOST_THREADS = 8  # more would read few sentences each
VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
IS_CHOSEN = any(map(os.environ.get, VARIABLES))  # PyTorch's number, by the user

T = TypeVar("T")
R = TypeVar("R")


class _Thread(local):
    is_fixed = False  # its number of threads does not change with the work
    is_known = False  # it has had a pass


_here = _Thread()
_outside: dict[int, int] = {}  # PyTorch's number outside of the passes that run now, by thread


@contextmanager
def threads_for(work: float, setting: int | None = None) -> Iterator[None]:
    """A context, or decorator, in which the calling thread computes a pass.

    Products of up to `SMALL_PRODUCT` multiplications take one thread, larger ones PyTorch's number.
    Passes inside choose anew; inside `threads` nothing is chosen.

    Args:
        work: multiplications of a product.
        setting: the user's number, which wins, but not in worker processes: they have one thread.
    """
    n, is_forked = 1, os.getpid() != IMPORTING_PROCESS
    if is_forked:  # the first product on several threads would wait forever for the parent's
        torch.set_num_threads(1)  # for good: other code would wait for them, too
    elif multiprocessing.parent_process() is None:
        n = setting or (_users_number() if IS_CHOSEN or work > SMALL_PRODUCT else 1)
    with nullcontext() if is_forked or _here.is_fixed else threads(n, is_fixed=False):
        yield


@contextmanager
def threads(n: int, is_fixed: bool = True) -> Iterator[None]:
    """A context, or decorator, in which the calling thread computes on n threads.

    Args:
        n: how many.
        is_fixed: passes inside take the same number.
    """
    thread, before = get_ident(), torch.get_num_threads()
    is_outermost, was_fixed = thread not in _outside, _here.is_fixed
    if is_outermost:
        before = _outside[thread] = _users_number()
    _here.is_fixed = is_fixed
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _here.is_fixed = was_fixed
        if is_outermost:
            del _outside[thread]


def steady_threads(setting: int | None = None, most: int = MOST_THREADS) -> int:
    """How many threads, of one processor each, may share work; inside `threads`, those.

    Args:
        setting: see `threads_for`.
        most: if the user has chosen none.
    """
    if os.getpid() != IMPORTING_PROCESS or multiprocessing.parent_process() is not None:
        return 1
    if _here.is_fixed:
        return torch.get_num_threads()
    if setting is not None or IS_CHOSEN:
        return setting or _users_number()
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else most
    return min(_users_number(), affinity, most)


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
        for item in chain(first, items):
            yield item, partial(function, item)
        return
    is_inference, is_grad = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def run(item: T) -> R:
        with threads(1), torch.inference_mode(is_inference), torch.set_grad_enabled(is_grad):
            return function(item)

    pool = ThreadPoolExecutor(n, "spacy_elmo")
    waiting: deque[tuple[T, Callable[[], R]]] = deque()
    try:
        for item in chain(first, items):
            waiting.append((item, pool.submit(run, item).result))
            if len(waiting) > n:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()
    finally:  # nothing is read behind the caller's back
        pool.shutdown(cancel_futures=True)


def _users_number() -> int:
    """PyTorch's number in the calling thread, outside of all passes."""
    numbers = [torch.get_num_threads()]
    if not _here.is_known:  # a thread new to PyTorch begins with what another's pass has set
        numbers.extend(_outside.values())
        _here.is_known = True
    return _outside.get(get_ident(), max(numbers))
