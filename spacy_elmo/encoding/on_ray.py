"""Calls of a function on the machines of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from ..util.optional_imports import import_extra

T = TypeVar("T")


def map_on_ray(
    function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], address: str, n_tasks: int
) -> Iterator[T]:
    """The results of a function, in any order; Ray repeats a call whose machine has failed.

    Args:
        function: defined at the top level of a module that all machines have.
        tasks: the arguments of each call; a few at a time are read, so there may be any number.
        address: of the cluster; ``"local"`` starts one on this machine.
        n_tasks: calls at a time, on a core each.

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
    for each in running:
        yield ray.get(each)
