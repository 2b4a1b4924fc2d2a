"""The processes that train together, as torchrun starts them, or a single one."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import import_module
from inspect import signature
from typing import Any, TypeVar

import torch
from torch import distributed, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from .machine import find_device

# Ranks wait for each other while the first evaluates; torchrun notices those that are lost.
TIMEOUT = timedelta(days=1)
# After an error: the first rank has this long to report it before torchrun, seeing another rank
# end, ends it; and each rank has this long to end, whatever it still waits for.
SECONDS_TO_REPORT, SECONDS_TO_EXIT = 2, 60

T = TypeVar("T")


@dataclass(frozen=True)
class ProcessGroup:
    """The processes that train together, as one of them sees them.

    Each has the whole model and reads the same batches, which follow from the seed, but trains
    on its share of each batch only. So the gradient, averaged over the processes, is that of the
    whole batch, however many there are; the price is that each reads all of the text.

    Attributes:
        device: where this process computes.
        rank: index of this process; rank 0 writes and prints for all.
        world_size: number of processes.
    """

    device: torch.device
    rank: int = 0
    world_size: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def sum(self, value: float) -> float:
        """The sum over all ranks, which wait for each other."""
        if self.world_size == 1:
            return value
        # On the CPU: no GPU waits, and none is waited for.
        tensor = torch.tensor(value, dtype=torch.float64)
        distributed.all_reduce(tensor)
        return float(tensor)

    def barrier(self) -> None:
        """Wait until all ranks are here and what they sent each other has arrived.

        Call it at the end: a tensor that a thread of PyTorch still uses when Python ends would
        abort the process.
        """
        if self.world_size > 1:
            distributed.barrier()

    def run_on_all_ranks(self, work: Callable[[], T]) -> T:
        """Do the same on every rank; if it fails on one, all end here.

        Raises:
            ValueError, OSError: on the first rank, if it failed on any.
            SystemExit: on the others.
        """
        error: Exception | None = None
        try:
            result = work()
        except (ValueError, OSError) as failure:
            error = failure
        texts = gather(None if error is None else str(error)) if self.world_size > 1 else []
        if error is not None and self.is_first:
            raise error
        failed = [f"Process {rank}: {text}" for rank, text in enumerate(texts) if text is not None]
        if failed and self.is_first:
            raise ValueError(failed[0])
        if failed:
            time.sleep(SECONDS_TO_REPORT)
            raise SystemExit(1)
        return result

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module, so that backward averages its gradients over the ranks.

        Call it again when other parameters require a gradient than before.
        """
        if self.world_size == 1:
            return module
        # Buffers are not trained. Newer versions of PyTorch have another name for the setting.
        names = signature(DistributedDataParallel).parameters
        name = "forward_sync_buffers" if "forward_sync_buffers" in names else "broadcast_buffers"
        settings: dict[str, Any] = {name: False, "gradient_as_bucket_view": True}
        return DistributedDataParallel(module, **settings)


@contextmanager
def process_group(device: str) -> Iterator[ProcessGroup]:
    """Join the processes that torchrun has started; without torchrun, a group of one.

    Args:
        device: PyTorch's name of it. With torchrun ``"cpu"``, or any GPU: each process takes the
            one of its local rank.

    Raises:
        ValueError: there is no such device, or not one for each process.
        SystemExit: an error on another rank than the first has ended this process; it is printed.
    """
    if not is_launched():
        yield ProcessGroup(find_device(device))
        return
    on_gpus = device != "cpu" and torch.cuda.is_available()
    store, rank, world_size = next(rendezvous("env://", timeout=TIMEOUT))
    if os.environ["GROUP_WORLD_SIZE"] == "1":
        # torchrun keeps its store, with the addresses of processes that are gone, when it restarts
        # them. On several machines not all learn how often it has.
        store = distributed.PrefixStore(os.environ["TORCHELASTIC_RESTART_COUNT"], store)
    # DistributedDataParallel imports it. Imported after the group is made, it keeps the group alive
    # until Python exits, and a thread that still holds a tensor then aborts the process.
    import_module("torch._dynamo")
    backend = "cpu:gloo,cuda:nccl" if on_gpus else "gloo"
    distributed.init_process_group(
        backend, timeout=TIMEOUT, store=store, rank=rank, world_size=world_size
    )
    try:
        group = ProcessGroup(torch.device("cpu"), rank, world_size)
        yield replace(group, device=group.run_on_all_ranks(lambda: local_device(device)))
    except BaseException as error:
        # torchrun ends the others when this process has ended.
        if hasattr(signal, "alarm"):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS_TO_EXIT)
        if not on_gpus:  # there it could wait for the others
            traceback.clear_frames(error.__traceback__)
            leave()
        lost = is_connection_lost(error)
        if lost or (rank and isinstance(error, (ValueError, OSError))):
            text = "the connection to the other processes is lost" if lost else error
            print(f"Process {rank}: {text}", file=sys.stderr, flush=True)
            raise SystemExit(1) from None
        raise
    leave()


def leave() -> None:
    """End the threads of the process group.

    A module that `ProcessGroup.wrap` has given must be gone: freed after this, it would free the
    group, and wait for its threads while it holds the global interpreter lock, for which they wait.
    """
    gc.collect()
    distributed.destroy_process_group()


def local_device(name: str) -> torch.device:
    """The CPU, or the GPU of this process's local rank.

    Raises:
        ValueError: there is no such device.
    """
    if name == "cpu":
        return find_device(name)
    device = find_device(f"cuda:{os.environ['LOCAL_RANK']}")
    torch.cuda.set_device(device)
    return device


def is_launched() -> bool:
    """Tell if torchrun has started this process."""
    return distributed.is_available() and distributed.is_torchelastic_launched()


def is_first_process() -> bool:
    """Tell if this process prints for all: it is rank 0, or alone."""
    return not is_launched() or os.environ["RANK"] == "0"


def gather(value: T) -> list[T]:
    """The values of all ranks, in their order; they wait for each other."""
    values: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(values, value)
    return values


def is_connection_lost(error: BaseException) -> bool:
    """Tell if an error means that another process no longer answers."""
    lost = "gloo" in str(error) or "Connection closed by peer" in str(error)
    return isinstance(error, distributed.DistError) or (isinstance(error, RuntimeError) and lost)
