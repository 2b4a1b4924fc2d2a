"""PyTorch's own settings of precision: TensorFloat-32, autocast, matrix products in float32.

PyTorch lets cuDNN compute in TensorFloat-32 by default, which has the 10-bit mantissa of half
precision: layers would differ from a CPU's by 1e-3. Around our own passes cuDNN's LSTM therefore
computes in float32. Plain matrix products do so by default; whether they may be faster is the
user's choice (``torch.set_float32_matmul_precision``, ``matmul_precision`` in a pretraining
config), and so is mixed precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import torch

_lock = Lock()  # nobody waits for it in a forked process, where CUDA cannot be used
_open: list[Any] = []  # for each context that is open, what the user has set


@contextmanager
def without_tf32(device: torch.device) -> Iterator[None]:
    """A context in which cuDNN's LSTM computes in float32 on a GPU, forward and backward.

    The switch belongs to the process: it also holds for autograd's threads, and for what other
    threads compute meanwhile. What the user has set is put back by the last thread.
    """
    if device.type != "cuda":
        yield
        return
    cudnn: Any = torch.backends.cudnn
    off: Any
    switch, name, off = cudnn, "allow_tf32", False
    if hasattr(getattr(cudnn, "rnn", None), "fp32_precision"):  # newer: one for each kind
        switch, name, off = cudnn.rnn, "fp32_precision", "ieee"
    with _lock:
        _open.append(_open[0] if _open else getattr(switch, name))
        setattr(switch, name, off)
    try:
        yield
    finally:
        with _lock:
            before = _open.pop()
            if not _open:
                setattr(switch, name, before)


def autocast_type(device: torch.device) -> torch.dtype | None:
    """The type of products under autocast; None outside it."""
    is_enabled = torch.is_autocast_enabled(device.type)
    return torch.get_autocast_dtype(device.type) if is_enabled else None


def float32_precision(device: torch.device) -> str:
    """Return the precision of float32 products on a device: ``"highest"``, ``"high"`` or
    ``"medium"``. PyTorch's own function raises where one of its newer switches was set."""
    backend: Any = torch.backends.cuda if device.type == "cuda" else torch.backends.mkldnn
    switch = getattr(getattr(backend, "matmul", None), "fp32_precision", None)
    if switch is None:  # an older PyTorch
        return torch.get_float32_matmul_precision()
    return {"tf32": "high", "bf16": "medium"}.get(switch, "highest")


def rounding(device: torch.device) -> tuple[torch.dtype | None, str]:
    """Return PyTorch's rounding of products; in caches, part of the key of what they hold."""
    return autocast_type(device), float32_precision(device)


@cache
def has_fast_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Tell whether the CPU multiplies bfloat16 faster than float32, by what Linux lists of it: AMX,
    ARM's instructions, or AVX-512's except on Intel's CPUs, where they are slower."""
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    words = set(text.split())
    avx512 = "avx512_bf16" in words and "GenuineIntel" not in words
    return avx512 or not words.isdisjoint({"amx_bf16", "bf16"})
