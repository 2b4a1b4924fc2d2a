"""The C library that reads a biLM on a CPU, loaded by ctypes.

It keeps no state and starts no thread; ctypes releases the GIL while it computes. Sizes are checked
here, since C would read beyond a tensor.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from functools import lru_cache
from typing import Any

import torch

from .source import LIBRARY, source_hash

VARIABLE = "SPACY_ELMO_KERNEL"  # of the environment: an instruction set, or "none"
KINDS = {torch.float16: 0, torch.float32: 1, torch.int8: 2}  # `enum kind` of kernel.c


class ProductStruct(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("inputs", "columns", "kind")),
        *((name, ctypes.c_void_p) for name in ("weights", "bias", "scales", "sums")),
    ]


class LayerStruct(ctypes.Structure):
    _fields_ = [
        *((name, ProductStruct) for name in ("ih", "hh", "hr")),
        ("cells", ctypes.c_int32),
        *((name, ctypes.c_float) for name in ("cell_clip", "proj_clip")),
    ]


class EncoderStruct(ctypes.Structure):
    _fields_ = [
        *((n, ctypes.c_int32) for n in ("n_widths", "row", "is_tanh", "n_features", "n_highways")),
        *((name, ctypes.c_void_p) for name in ("widths", "numbers", "bias")),
        ("highways", ctypes.POINTER(ProductStruct)),
        ("projection", ProductStruct),
    ]


class Kernel:
    """The library's functions with one instruction set.

    Args:
        library: see `load_kernel`.
        name: the instruction set.

    Attributes:
        width: floats of its vectors; weights are packed for it.
    """

    def __init__(self, library: Any, name: str):
        self._library, self.name, self._set = library, name, name.encode()
        self.width: int = library.elmo_width(self._set)

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function with structures, integers, and contiguous tensors on a CPU.

        Raises:
            MemoryError: there is not enough memory.
        """
        given: list[Any] = [self._set]
        for each in arguments:
            if isinstance(each, torch.Tensor):
                assert each.is_contiguous() and each.device.type == "cpu"
                each = ctypes.c_void_p(each.data_ptr())
            given.append(each)
        if getattr(self._library, f"elmo_{function}")(*given):
            raise MemoryError("There is not enough memory to read so many words at once.")


@lru_cache
def load_kernel() -> Kernel | None:
    """The kernel with this CPU's fastest instruction set, or with the set that the environment
    variable `VARIABLE` names. None, with a warning, if the package has no library for this system
    or this CPU.

    Raises:
        ValueError: the variable names a set that this CPU does not have.
    """
    chosen = os.environ.get(VARIABLE, "")
    if chosen == "none":
        return None
    library, reason = open_library()
    sets = instruction_sets(library) if library else []
    if library and not sets:
        reason = "This CPU has neither AVX2 nor NEON"
    if reason:
        warnings.warn(
            f"{reason}: vectors are computed by PyTorch's operators, which is several times "
            f"slower. Install a wheel for this system, or a C compiler (or `pip install ziglang`) "
            f"and this package again.",
            UserWarning,
            stacklevel=2,
        )
        return None
    if chosen and chosen not in sets:
        raise ValueError(
            f"The environment variable {VARIABLE} is '{chosen}', but this CPU has {sets}: choose "
            f"one of these, or none."
        )
    return Kernel(library, chosen or sets[0])


def open_library() -> tuple[Any, str]:
    """The library; or None, and the reason."""
    try:
        library = ctypes.CDLL(str(LIBRARY))
        library.elmo_set.restype = library.elmo_source.restype = ctypes.c_char_p
    except (OSError, AttributeError):
        return None, f"There is no library {LIBRARY.name} in '{LIBRARY.parent}'"
    if library.elmo_source().decode() != source_hash():
        return None, f"'{LIBRARY}' was built from another source"
    return library, ""


def instruction_sets(library: Any) -> list[str]:
    """The instruction sets that the library has and this CPU runs, the fastest first."""
    found: list[str] = []
    while name := library.elmo_set(len(found)):
        found.append(name.decode())
    return found
