"""The number of threads of a forward pass.

The products of a biLM are small. Several threads inside one wait for each other at its end: on
idle processors that costs microseconds, where others use them a product may take a hundred times
as long. So a pass takes as many threads as its work pays for, and no more than there are free
processors. What the user has chosen wins. Larger work is divided by sentences or Docs among threads
that compute on one processor each and do not wait for each other.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

import torch

from .processors import FreeProcessors, usable_processors

IMPORTING_PROCESS = os.getpid()
WORK_PER_THREAD = 2**23  # multiplications of a product, below which threads wait more than work
NEARLY_FREE = 0.25  # of a processor that others use, at most, where it counts as free
VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")

T = TypeVar("T")
R = TypeVar("R")

FIXED = 0  # in place of the user's number: nothing is chosen

# PyTorch's number of threads outside of all contexts of this module; None outside.
_users_number: ContextVar[int | None] = ContextVar("_users_number", default=None)


class Process(NamedTuple):
    """A process, as far as the number of its threads depends on it.

    Attributes:
        is_forked: from one that had imported PyTorch. If that has computed on several threads,
            the first product on several threads would wait forever for those that it did not
            inherit.
        is_worker: of `multiprocessing`, one of several that would compete for the processors.
        has_variables: whether the user has set `VARIABLES`.
        n_at_start: threads that PyTorch starts with.
        passes: identifiers of the threads that compute a pass now.
        free: how many processors are free.
    """

    is_forked: bool
    is_worker: bool
    has_variables: bool
    n_at_start: int
    passes: set[object]
    free: Callable[[], float]


def choose_threads(work: float, process: Process, n_now: int, setting: int | None = None) -> int:
    """Choose a number of threads to compute on.

    Args:
        work: multiplications of a product.
        process: this one.
        n_now: PyTorch's number of threads.
        setting: the user's; None to choose.
    """
    if process.is_forked:
        return 1
    if setting is not None:
        return setting
    if process.has_variables or n_now != process.n_at_start:
        return n_now
    most = int(min(process.n_at_start, work / WORK_PER_THREAD))
    if process.is_worker or most < 2:
        return 1
    return max(1, min(most, int(process.free() / max(1, len(process.passes)) + NEARLY_FREE)))


@contextmanager
def threads_for(work: float, setting: int | None = None) -> Iterator[None]:
    """A context, or decorator, in which the calling thread computes on as many threads as pay off.

    See `choose_threads`. Passes inside choose anew; inside `threads` nothing is chosen.

    Args:
        work, setting: see `choose_threads`.
    """
    n_now = _users_number.get()
    if n_now == FIXED:
        yield
        return
    process, this_pass = _process(os.getpid()), object()
    if n_now is None:
        n_now = torch.get_num_threads()
        process.passes.add(this_pass)
    try:
        with _thread_count(choose_threads(work, process, n_now, setting), n_now):
            yield
    finally:
        process.passes.discard(this_pass)


@contextmanager
def threads(n: int) -> Iterator[None]:
    """A context, or decorator, in which the calling thread computes on n threads.

    Other threads keep their number, where PyTorch computes with OpenMP and its functions are
    found, as on Linux.
    """
    with _thread_count(n, FIXED):
        yield


def in_threads(function: Callable[[T], R], items: Sequence[T], n: int) -> list[R]:
    """The results of a function for some items, computed by n threads on a processor each.

    Args:
        function, items: see above. Gradients are enabled as they are here; autocast is not.
        n: threads; 1 for the calling one, on as many processors as it has.
    """
    if n == 1:
        return list(map(function, items))
    is_inference, is_grad = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def run(item: T) -> R:
        with threads(1), torch.inference_mode(is_inference), torch.set_grad_enabled(is_grad):
            return function(item)

    pool = _pool("in_threads", os.getpid(), n)
    futures = [pool.submit(run, item) for item in items]
    wait(futures)
    return [future.result() for future in futures]


def results_ahead(
    function: Callable[[T], R], items: Iterable[T], n: int
) -> Iterator[tuple[T, Callable[[], R]]]:
    """Items in order, each with a function that returns the result for it, or raises its error.

    Results are computed by n threads on a processor each, for at most n items ahead of the one
    that is used. A lone item is left to the calling thread.

    Args:
        function, items: see above. Gradients are not enabled.
        n: threads; 1 to compute each result when it is asked for.
    """
    items = iter(items)
    if n == 1:
        for item in items:
            yield item, partial(function, item)
        return
    run = torch.no_grad()(threads(1)(function))
    # Not those of `in_threads`: what is computed here may wait for a lock.
    pool = _pool("results_ahead", os.getpid(), n)
    first: list[T] = []  # left to the calling thread if nothing follows
    waiting: deque[tuple[T, Future[R]]] = deque()
    used: list[Future[R]] = []
    error: Exception | None = None
    try:
        while error is None:
            try:
                item = next(items)
            except StopIteration:
                break
            except Exception as raised:  # after the results of what came before it
                error = raised
                break
            if not (first or waiting or used):
                first = [item]
                continue
            waiting.extend((each, pool.submit(run, each)) for each in [*first, item])
            first = []
            if len(waiting) > n:
                done, future = waiting.popleft()
                used = [future]
                yield done, future.result
        for item in first:
            yield item, partial(function, item)
        while waiting:
            done, future = waiting.popleft()
            used = [future]
            yield done, future.result
        if error is not None:
            raise error
    finally:  # nothing is read behind the caller's back
        for _, future in waiting:
            future.cancel()
        wait([*used, *(future for _, future in waiting)])


@lru_cache
def _pool(name: str, process_number: int, n: int) -> ThreadPoolExecutor:
    """Threads that stay, for PyTorch keeps the products that it has compiled by thread."""
    return ThreadPoolExecutor(n, f"spacy_elmo.{name}")


def steady_threads(setting: int | None = None) -> int:
    """A number of threads for long work, which does not depend on the load.

    Args:
        setting: the user's; None to choose.
    """
    process = _process(os.getpid())._replace(passes=set(), free=usable_processors)
    return choose_threads(math.inf, process, torch.get_num_threads(), setting)


@contextmanager
def _thread_count(n: int, users_number: int) -> Iterator[None]:
    """A context in which the calling thread has n threads, and the user's number is known."""
    n_before = torch.get_num_threads()  # a thread that has not used PyTorch gets its number now
    set_openmp, set_mkl, _ = _runtime()
    token = _users_number.set(users_number)
    try:
        if n != n_before:
            set_openmp(n)
            mkl_before = set_mkl(n)  # 0 if it follows OpenMP
        yield
    finally:
        if n != n_before:
            set_openmp(n_before)
            set_mkl(mkl_before)
        _users_number.reset(token)


class Runtime(NamedTuple):
    """Functions for the calling thread's own number of threads: OpenMP's, and MKL's beside it."""

    set_openmp: Callable[[int], object]
    set_mkl: Callable[[int], int]
    get_most: Callable[[], int]


@lru_cache(maxsize=1)
def _runtime() -> Runtime:
    """The functions that PyTorch computes with, found through its own library."""
    library: Any = ctypes.CDLL(torch._C.__file__)
    if not hasattr(library, "omp_set_num_threads"):  # also for threads that start meanwhile
        return Runtime(torch.set_num_threads, lambda n: 0, torch.get_num_threads)
    set_mkl = getattr(library, "MKL_Set_Num_Threads_Local", lambda n: 0)
    get_most = getattr(library, "MKL_Get_Max_Threads", library.omp_get_max_threads)
    return Runtime(library.omp_set_num_threads, set_mkl, get_most)


@lru_cache(maxsize=1)
def _process(number: int) -> Process:
    parent, current = multiprocessing.parent_process(), multiprocessing.current_process()
    method = getattr(current, "_start_method", None) or multiprocessing.get_start_method(True)
    is_forked = number != IMPORTING_PROCESS or (parent is not None and method == "fork")
    if is_forked:
        torch.set_num_threads(1)  # and keep it: other code in this process would wait as well
        return Process(True, True, False, 1, set(), lambda: 1.0)
    # PyTorch takes the same number in a thread that has not used it yet.
    with ThreadPoolExecutor(1) as pool:
        n_at_start = pool.submit(_runtime().get_most).result()
    has_variables = any(os.environ.get(name) for name in VARIABLES)
    is_worker = parent is not None
    return Process(False, is_worker, has_variables, n_at_start, set(), FreeProcessors())
