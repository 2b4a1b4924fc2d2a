"""Sets how a process computes: its precision and its memory."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def matmul_precision(name: str) -> Iterator[None]:
    """A context or decorator that sets the precision of float32 products by PyTorch's name."""
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # one of PyTorch's newer switches was set, which has no name
        before = name
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def save_memory_and_time() -> None:
    """Set how libraries in this process keep memory; call it before PyTorch computes.

    Batches hardly ever have the same shape. oneDNN caches 1,024 kernels with their buffers, a
    gigabyte that is hardly ever used again. glibc returns each large block to the system when it is
    freed; clearing the pages of new blocks takes a third of a training step.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(-3, 2**25)  # M_MMAP_THRESHOLD, the most that every glibc takes
        libc.mallopt(-1, 2**30)  # M_TRIM_THRESHOLD
