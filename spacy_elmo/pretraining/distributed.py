"""The processes that train together, as torchrun starts them, or a single one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module

import torch
from torch import distributed
from torch.distributed.rendezvous import rendezvous

from ..util.device import find_device

# The others wait while rank 0 evaluates. torchrun notices a process that has died.
TIMEOUT = timedelta(days=1)


@dataclass(frozen=True)
class ProcessGroup:
    """The processes that train together, seen from one of them.

    Each process has the whole model and reads the same batches, which follow from the seed, but
    computes the gradients of its share of each batch only. The gradients are added up, so any
    number of processes computes the same. The price is that each process reads the whole text.

    Attributes:
        device: where this process computes.
        rank: the index of this process; rank 0 writes and prints for all.
        world_size: the number of processes.
    """

    device: torch.device
    rank: int = 0
    world_size: int = 1

    def all_reduce(self, *tensors: torch.Tensor) -> None:
        """Add up each tensor over all processes, in place."""
        if self.world_size > 1:
            for tensor in tensors:
                distributed.all_reduce(tensor)

    def sum(self, value: float) -> float:
        """Add up a number over all processes, which wait for each other, but for no GPU."""
        tensor = torch.tensor(value, dtype=torch.float64)
        self.all_reduce(tensor)
        return float(tensor)

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.world_size > 1:
            distributed.barrier()


@contextmanager
def process_group(device: str) -> Iterator[ProcessGroup]:
    """Join the processes that torchrun has started; without torchrun, a group of one.

    Args:
        device: PyTorch's name of the device. With torchrun ``"cpu"`` or any GPU: each process takes
            the GPU of its local rank.

    Raises:
        ValueError: there is no such device, or not one for each process.
    """
    if not is_launched():
        yield ProcessGroup(find_device(device))
        return
    on_gpus = device != "cpu" and torch.cuda.is_available()
    store, rank, world_size = next(rendezvous("env://", timeout=TIMEOUT))
    if os.environ["GROUP_WORLD_SIZE"] == "1":
        # When torchrun restarts its processes, it keeps the store, which has the addresses of the
        # old ones. On several machines not all learn how often it has restarted them.
        store = distributed.PrefixStore(os.environ["TORCHELASTIC_RESTART_COUNT"], store)
    # Optimizers import it. If the group is made before, the import keeps the group alive until
    # Python exits, and a thread that still holds a tensor then aborts the process.
    import_module("torch._dynamo")
    backend = "cpu:gloo,cuda:nccl" if on_gpus else "gloo"
    distributed.init_process_group(
        backend, timeout=TIMEOUT, store=store, rank=rank, world_size=world_size
    )
    try:
        name = device if device == "cpu" else f"cuda:{os.environ['LOCAL_RANK']}"
        local_device = find_device(name)
        if local_device.type == "cuda":
            torch.cuda.set_device(local_device)
        yield ProcessGroup(local_device, rank, world_size)
        distributed.barrier()  # a tensor in use when Python ends would abort the process
    except BaseException:
        if not on_gpus:  # where it could wait for the others
            distributed.destroy_process_group()
        raise
    distributed.destroy_process_group()


def is_launched() -> bool:
    """Tell if torchrun has started this process."""
    return distributed.is_available() and distributed.is_torchelastic_launched()


def is_first_process() -> bool:
    """Tell if this process prints for all: it is rank 0, or alone."""
    return not is_launched() or os.environ["RANK"] == "0"
