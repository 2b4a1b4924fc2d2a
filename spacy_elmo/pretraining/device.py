"""How a run computes: precision and memory."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def matmul_precision(name: str) -> Iterator[None]:
    """A context in which float32 products have a precision of PyTorch's names."""
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # one of PyTorch's newer switches was set: there is no name to go back to
        before = name
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def save_memory_and_time() -> None:
    """Set how libraries of this process keep memory; call it before PyTorch computes.

    No two batches have the same shapes. By default oneDNN caches 1,024 kernels with their buffers,
    a gigabyte that is hardly ever used again; and glibc returns each large freed block to the
    system, and clearing its pages again takes a third of a training step.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(-3, 2**25)  # M_MMAP_THRESHOLD, the most that every glibc takes
        libc.mallopt(-1, 2**30)  # M_TRIM_THRESHOLD
