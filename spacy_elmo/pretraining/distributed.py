"""The processes that train together, as torchrun starts them, or a single one."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module

import torch
from torch import distributed, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from ..util.device import find_device

# Ranks wait for each other while the first evaluates; torchrun notices those that are lost.
TIMEOUT = timedelta(days=1)
SECONDS_TO_EXIT = 60  # after an error, whatever a rank still waits for


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

        Call it at the end, too: a tensor that a thread of PyTorch still uses when Python ends
        would abort the process.
        """
        if self.world_size > 1:
            distributed.barrier()

    def wrap(self, module: nn.Module) -> nn.Module:
        """The module, so that backward averages its gradients over the ranks.

        Call it again when other parameters require a gradient than before.
        """
        if self.world_size == 1:
            return module
        return DistributedDataParallel(module, gradient_as_bucket_view=True)


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
        found = find_device(device if device == "cpu" else f"cuda:{os.environ['LOCAL_RANK']}")
        if found.type == "cuda":
            torch.cuda.set_device(found)
        yield ProcessGroup(found, rank, world_size)
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


def is_launched() -> bool:
    """Tell if torchrun has started this process."""
    return distributed.is_available() and distributed.is_torchelastic_launched()


def is_first_process() -> bool:
    """Tell if this process prints for all: it is rank 0, or alone."""
    return not is_launched() or os.environ["RANK"] == "0"


def is_connection_lost(error: BaseException) -> bool:
    """Tell if an error means that another process no longer answers."""
    lost = "gloo" in str(error) or "Connection closed by peer" in str(error)
    return isinstance(error, distributed.DistError) or (isinstance(error, RuntimeError) and lost)
