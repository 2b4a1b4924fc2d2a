"""The processes that train together, as torchrun starts them; one where it does not."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import distributed, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from ...bilm.files import write_text
from .machine import find_device

LAUNCH = "launch.json"
# Processes wait for each other as long as the first evaluates; those that are lost torchrun sees.
TIMEOUT = timedelta(days=1)
# After an error: what the first has to tell it in before torchrun ends it, because another has
# ended; and what each has to end in, whatever it still waits for.
SECONDS_TO_TELL, SECONDS_TO_EXIT = 2, 60

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """What one process knows of all that train together.

    Each holds the whole model and reads the same batches, for these follow from the seed; of each
    batch it trains on its share. That way the gradient, averaged over the processes, is that of
    the whole batch, however many there are; the price is that each reads all of the text.

    Attributes:
        device: where this one computes.
        rank: its number; the first, 0, writes and speaks for all.
        count: how many there are.
        agents: those of torchrun that started them, one on each machine; none without torchrun.
    """

    device: torch.device
    rank: int = 0
    count: int = 1
    agents: tuple[str, ...] = ()

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @property
    def share(self) -> tuple[int, int]:
        """Which share of each batch is this one's, of how many; see `EncodedSentences.batch`."""
        return self.rank, self.count

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process; all wait here for each other."""
        return bool(self._sum(float(flag))) if self.count > 1 else flag

    def sum(self, number: float) -> float:
        """The sum over all processes, which wait here for each other."""
        return self._sum(number) if self.count > 1 else number

    def wait(self) -> None:
        """Wait until all processes are here; what they have sent each other is done with.

        To be called at the end: a tensor that a thread of PyTorch's still holds as Python ends
        would abort the process.
        """
        if self.count > 1:
            distributed.barrier()  # without a tensor

    def _sum(self, number: float) -> float:
        # On the CPU, where waiting keeps no GPU busy and no GPU is waited for.
        tensor = torch.tensor(number, dtype=torch.float64)
        distributed.all_reduce(tensor)
        return float(tensor)

    def alike(self, work: Callable[[], T]) -> T:
        """Do what every process does alike: if it fails in one, all end here.

        Raises:
            ValueError, OSError: in the first process, that it failed in one.
            SystemExit: in the others.
        """
        error: Exception | None = None
        try:
            result = work()
        except (ValueError, OSError) as failure:
            error = failure
        texts = gather(None if error is None else str(error)) if self.count > 1 else []
        if error is not None and self.is_first:
            raise error
        failed = [f"Process {rank}: {text}" for rank, text in enumerate(texts) if text is not None]
        if failed and self.is_first:
            raise ValueError(failed[0])
        if failed:
            time.sleep(SECONDS_TO_TELL)
            raise SystemExit(1)
        return result

    def joined(self, module: nn.Module) -> nn.Module:
        """The module, its gradients averaged over the processes when they are computed.

        To be called anew when other parameters require a gradient than before.
        """
        if self.count == 1:
            return module
        # No buffer is learned. PyTorch has given the setting another name.
        names = signature(DistributedDataParallel).parameters
        name = "forward_sync_buffers" if "forward_sync_buffers" in names else "broadcast_buffers"
        settings: dict[str, Any] = {name: False, "gradient_as_bucket_view": True}
        return DistributedDataParallel(module, **settings)

    def apart(self, module: nn.Module) -> AbstractContextManager[None]:
        """A context in which gradients of a `joined` module are added up, but not averaged yet."""
        if isinstance(module, DistributedDataParallel):
            return module.no_sync()
        return nullcontext()

    def own(self, out: Path) -> bool:
        """Whether an earlier start of these same processes, by the same torchrun, has begun to
        write into this directory: torchrun starts them again when one is lost."""
        try:
            return not set(self.agents).isdisjoint(json.loads((out / LAUNCH).read_text()))
        except (OSError, ValueError, TypeError):
            return False

    def take(self, out: Path) -> None:
        """Note in a directory that these processes write into it from now on; see `own`."""
        (out / LAUNCH).unlink(missing_ok=True)
        if self.agents:
            write_text(out / LAUNCH, json.dumps(self.agents))


@contextmanager
def joined_processes(device: str) -> Iterator[Processes]:
    """Join the processes that torchrun has started; without it, be alone.

    Args:
        device: PyTorch's name of it. Where torchrun starts the processes, ``"cpu"``, or any GPU:
            each takes that of its number on its machine.

    Raises:
        ValueError: there is no such device, or not one for each process.
        SystemExit: an error ended this process, and it is not the first; it has been told.
    """
    if not is_launched():
        yield Processes(find_device(device))
        return
    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if count == 1:
        yield Processes(local_device(device), agents=(agent(),))
        return
    on_gpus = device != "cpu" and torch.cuda.is_available()
    store, _, _ = next(rendezvous("env://", rank, count, timeout=TIMEOUT))
    store.set_timeout(TIMEOUT)
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if on_gpus else "gloo",
        timeout=TIMEOUT,
        store=meet(store, rank, count),
        rank=rank,
        world_size=count,
    )
    try:
        group = Processes(torch.device("cpu"), rank, count, tuple(sorted(set(gather(agent())))))
        yield replace(group, device=group.alike(lambda: local_device(device)))
    except BaseException as error:
        # torchrun ends the others when this one has ended.
        if hasattr(signal, "alarm"):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS_TO_EXIT)
        if not on_gpus:  # there it could wait for the others
            distributed.destroy_process_group()
        if is_of_others(error):
            print(f"Process {rank} has lost the others", file=sys.stderr, flush=True)
            raise SystemExit(1) from None
        if rank and isinstance(error, (ValueError, OSError)):
            print(f"Process {rank}: {error}", file=sys.stderr, flush=True)
            raise SystemExit(1) from None
        raise
    distributed.destroy_process_group()


def meet(store: distributed.Store, rank: int, count: int) -> distributed.Store:
    """Meet the other processes in torchrun's store, once all have been started (anew).

    torchrun may keep the store when it starts the processes again, and does not tell all of them
    alike how often it has; so the addresses in it may be those of processes that are no more. Here
    only those find each other that are.

    Returns:
        A part of the store in which nothing else lies.
    """
    mine = uuid.uuid4().hex
    if rank == 0:
        store.set("first", mine)
        for other in range(1, count):
            of_other = store.get(f"{mine}/{other}").decode()  # once it is there
            store.set(f"{mine}/{of_other}", "seen")
        return distributed.PrefixStore(mine, store)
    while True:
        first = store.get("first").decode()  # or of one that is no more, and will see nobody
        store.set(f"{first}/{rank}", mine)
        for _ in range(20):
            if store.check([f"{first}/{mine}"]):
                return distributed.PrefixStore(first, store)
            time.sleep(0.05)


def local_device(name: str) -> torch.device:
    """The CPU, or the GPU of this process among those on its machine.

    Raises:
        ValueError: there is no such device.
    """
    if name == "cpu":
        return find_device(name)
    device = find_device(f"cuda:{os.environ['LOCAL_RANK']}")
    torch.cuda.set_device(device)
    return device


def is_launched() -> bool:
    """Whether torchrun has started this process."""
    return distributed.is_available() and distributed.is_torchelastic_launched()


def speaks() -> bool:
    """Whether this process is the first of those that train together, and tells what all find."""
    return not is_launched() or os.environ["RANK"] == "0"


def gather(value: T) -> list[T]:
    """What each process has here, in their order; they wait for each other."""
    values: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(values, value)
    return values


def agent() -> str:
    """What tells the torchrun that started this process from any other, before or elsewhere."""
    parent = os.getppid()
    try:  # when it was started, for numbers are used again
        start = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        start = ""
    return f"{os.environ['TORCHELASTIC_RUN_ID']} {socket.gethostname()} {parent} {start}".strip()


def is_of_others(error: BaseException) -> bool:
    """Whether an error says that another process does not answer any more."""
    lost = "gloo" in str(error) or "Connection closed by peer" in str(error)
    return isinstance(error, distributed.DistError) or (isinstance(error, RuntimeError) and lost)
