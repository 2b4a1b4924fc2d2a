"""How PyTorch rounds: TensorFloat-32, autocast, products in float32.

PyTorch lets cuDNN compute in TensorFloat-32 by default, which has the 10-bit mantissa of half
precision: layers would differ from a CPU's by 1e-3. Around our own passes cuDNN's LSTM therefore
computes in float32. Plain matrix products do so by default; whether they may be faster is the
user's choice (``torch.set_float32_matmul_precision``, ``matmul_precision`` in a pretraining
config), and so is mixed precision.
"""

from __future__ import annotations

import platform
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
    rnn: Any = torch.backends.cudnn.rnn
    with _lock:
        _open.append(_open[0] if _open else rnn.fp32_precision)
        rnn.fp32_precision = "ieee"
    try:
        yield
    finally:
        with _lock:
            before = _open.pop()
            if not _open:
                rnn.fp32_precision = before


def rounding(device: torch.device) -> tuple[torch.dtype | None, str]:
    """Return PyTorch's rounding of products; in caches, part of the key of what they hold.

    Returns:
        Their type under autocast, None outside it; and the precision of float32 products,
        ``"highest"``, ``"high"`` or ``"medium"``. PyTorch's own function for that raises where one
        of its newer switches was set.
    """
    is_autocast = torch.is_autocast_enabled(device.type)
    backend: Any = torch.backends.cuda if device.type == "cuda" else torch.backends.mkldnn
    precision = {"tf32": "high", "bf16": "medium"}.get(backend.matmul.fp32_precision, "highest")
    return torch.get_autocast_dtype(device.type) if is_autocast else None, precision


@cache
def cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """What Linux lists of the CPU's maker and its instructions; elsewhere, the CPU's name."""
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    kept = [line for line in lines if line.startswith(("vendor_id", "flags", "Features"))]
    return frozenset(" ".join(kept or [platform.processor()]).split())


def has_fast_bfloat16() -> bool:
    """Tell whether the CPU multiplies bfloat16 faster than float32, by what Linux lists of it: AMX,
    ARM's instructions, or AVX-512's except on Intel's CPUs, where they are slower."""
    features = cpu_features()
    avx512 = "avx512_bf16" in features and "GenuineIntel" not in features
    return avx512 or not features.isdisjoint({"amx_bf16", "bf16"})
