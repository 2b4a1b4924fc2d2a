"""PyTorch's own settings of precision: TensorFloat-32, autocast, matrix products in float32.

PyTorch lets cuDNN compute in TensorFloat-32 by default, which has the 10-bit mantissa of half
precision: layers would differ from a CPU's by 1e-3. cuDNN's LSTM therefore computes in IEEE
float32. Plain matrix products do so by default; whether they may be faster is the user's choice
(``torch.set_float32_matmul_precision``, ``matmul_precision`` in a pretraining config), and so is
mixed precision.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch


@cache  # once in a process
def switch_off_tf32() -> None:
    """Switch TensorFloat-32 off in cuDNN; call it before cuDNN computes.

    The switch belongs to the process, not to a thread or a call: it is set at the first use,
    stays, and also holds for the backward pass. It applies to other models of the process, too;
    whoever wants TensorFloat-32 for these can switch it on again afterwards, and it is not
    switched off a second time. ``torch.backends.cudnn.benchmark``, ``deterministic`` and
    ``enabled`` are left alone.
    """
    cudnn = torch.backends.cudnn
    cudnn.allow_tf32 = False
    # Newer versions have a switch for each kind, which may have another value from one above it.
    # Both are set: where they differ, PyTorch refuses to read `allow_tf32`.
    for kind in ("conv", "rnn"):
        switch: Any = getattr(cudnn, kind, None)
        if hasattr(switch, "fp32_precision"):
            switch.fp32_precision = "ieee"


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
