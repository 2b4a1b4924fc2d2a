"""What a run asks of its process and machine: signals, device, memory, rounding."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import torch


@contextmanager
def stop_on_signals(quiet: bool = False) -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C (or SIGTERM) instead of stopping at once; a second one does stop.

    Args:
        quiet: print nothing on the first.
    """
    received: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for other, handler in previous.items():
            signal.signal(other, handler)
        if not quiet:  # past Python's buffers, which may be in use at this moment
            os.write(2, b"\nStopping after the step under way; once more stops at once\n")

    # Only a main thread may set handlers.
    numbers = (signal.SIGINT, signal.SIGTERM)
    try:
        previous = {number: signal.signal(number, note) for number in numbers}
    except ValueError:
        previous = {}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def find_device(name: str) -> torch.device:
    """The device of PyTorch's name for it.

    Raises:
        ValueError: there is no such device here.
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"Unknown device {name!r}; give 'cpu', or 'cuda:0' for a GPU.") from None
    if device.type == "cuda":
        n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= n_devices:
            raise ValueError(
                f"There is no GPU {device.index or 0}: PyTorch {torch.__version__} finds "
                f"{n_devices} CUDA devices on this machine. Leave out --gpu-id to use the CPU."
            )
    return device


@contextmanager
def matmul_precision(name: str) -> Iterator[None]:
    """Have float32 products rounded as PyTorch's name for it says, within this context."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def bound_kernels() -> None:
    """Have oneDNN keep the kernels of the last few shapes only, if it has not begun yet.

    No two batches have the same shapes. By default it keeps 1,024 kernels with their buffers, a
    gigabyte that is hardly ever used again.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")


def keep_freed_memory() -> None:
    """Have the C library keep large freed blocks for the next step.

    By default glibc returns each to the system, and clearing its pages anew takes a third of a
    training step. Elsewhere than on glibc nothing happens.
    """
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):
            libc.mallopt(-3, 2**25)  # M_MMAP_THRESHOLD, at the most that every glibc takes
            libc.mallopt(-1, 2**30)  # M_TRIM_THRESHOLD
