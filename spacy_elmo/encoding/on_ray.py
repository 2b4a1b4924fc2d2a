"""Calls a function on the machines of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from ..util.optional_imports import import_extra

T = TypeVar("T")


def map_on_ray(
    function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], address: str, n_tasks: int
) -> Iterator[T]:
    """Yield the results of a function, in any order. Ray repeats a call if its machine fails.

    Args:
        function: a function at the top level of a module that all machines have.
        tasks: the arguments of each call, which are read a few at a time.
        address: the address of the cluster; ``"local"`` starts one on this machine.
        n_tasks: the number of calls at a time, each on one core.

    Raises:
        ValueError: Ray is not installed.
    """
    ray = import_extra("ray", "ray", "--ray needs ray", address)
    ray.init(address, ignore_reinit_error=True, log_to_driver=False)
    remote = ray.remote(function)
    running: list[Any] = []
    for task in tasks:
        if len(running) == n_tasks:
            [done], running = ray.wait(running)
            yield ray.get(done)
        running.append(remote.remote(*task))
    for result in running:
        yield ray.get(result)
