"""Files of tensors in the safetensors format, and what their tensors must be like."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save as save_tensors

from ..util.files import reading, write_bytes

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
TOO_LARGE = 1e18  # its square still is a float32
Tensors = Mapping[str, torch.Tensor]
Shapes = Mapping[str, tuple[int, ...]]


def read_shapes(path: Path) -> Shapes:
    """The names and shapes of a safetensors file; no tensor is read."""
    with reading("the weights", path), safe_open(path, "pt") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def read_tensors(path: Path, expected: Tensors, source: str = "") -> Tensors:
    """The tensors of a safetensors file, copied from memory maps: it may be overwritten later.

    Args:
        path: the file.
        expected: tensors without values, of the names, shapes and types that it must have.
        source: where they come from, for errors; the path if empty.

    Raises:
        ValueError: it is damaged, or has others, or values with which something overflows.
    """
    check_shapes(expected, read_shapes(path), source or str(path))
    tensors = {}
    for name in expected:  # a map for each, so that what was copied does not stay in memory
        with reading("the weights", path), safe_open(path, "pt") as file:
            tensors[name] = file.get_tensor(name).clone()
    check_tensors(expected, tensors, source or str(path))
    return tensors


def check_shapes(expected: Tensors, found: Shapes, source: str) -> None:
    """Raise a ValueError unless the tensors have the expected names and shapes."""
    missing, unknown = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing or unknown:
        raise ValueError(
            f"{source} does not fit its config: missing tensors {missing[:5]}, unknown "
            f"{unknown[:5]}."
        )
    for name, tensor in expected.items():
        if found[name] != tuple(tensor.shape):
            raise ValueError(
                f"{source}: tensor '{name}' has the shape {found[name]}, but the config requires "
                f"{tuple(tensor.shape)}."
            )


def check_tensors(expected: Tensors, found: Tensors, source: str) -> None:
    """Raise a ValueError unless the tensors have the expected names and shapes, and floating-point
    values with which nothing overflows, or integers of the expected type."""
    check_shapes(expected, {name: tuple(tensor.shape) for name, tensor in found.items()}, source)
    for name, tensor in found.items():
        dtype = expected[name].dtype
        allowed = FLOATS if dtype.is_floating_point else (dtype,)
        if tensor.dtype not in allowed:
            kinds = " or ".join(str(each).removeprefix("torch.") for each in allowed)
            raise ValueError(
                f"{source}: tensor '{name}' is of the type {tensor.dtype}, expected {kinds}."
            )
        # The extremes are not finite if any value is not, and finding them takes no memory.
        if tensor.numel() and not all(abs(each.item()) < TOO_LARGE for each in tensor.aminmax()):
            raise ValueError(
                f"{source}: tensor '{name}' has values that are not finite, or far too large."
            )


def compact(tensors: Tensors, half: bool = False) -> dict[str, torch.Tensor]:
    """The tensors on the CPU, in half precision where that is exact.

    Args:
        tensors: by name; integers stay the same.
        half: round all others to half precision.
    """
    found: dict[str, torch.Tensor] = {}
    for name, stored in tensors.items():
        tensor = stored.detach().cpu()
        rounded = tensor.half() if tensor.is_floating_point() else tensor
        is_wanted = half or torch.equal(rounded.to(tensor.dtype), tensor)
        found[name] = (rounded if is_wanted else tensor).contiguous()
    return found


def write_tensors(tensors: Tensors, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file, whole or not at all, with the permissions any new file gets.

    Raises:
        OSError: it cannot be written, as where the disk is full.
    """
    # `save_file` makes it readable for its owner alone, and hides the system's error.
    write_bytes(path, save_tensors({n: t.contiguous() for n, t in tensors.items()}, metadata))
