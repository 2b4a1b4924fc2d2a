"""Tensors in the safetensors format, checked before and after they are read, and biLMs of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save as save_tensors

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
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
            raise ValueError(
                f"{source}: tensor '{name}' is of the type {tensor.dtype}, expected {allowed[0]}."
            )
        # The extremes are not finite if any value is not, and finding them takes no memory.
        if tensor.numel() and not all(abs(each.item()) < TOO_LARGE for each in tensor.aminmax()):
            raise ValueError(
                f"{source}: tensor '{name}' has values that are not finite, or far too large."
            )


def read_bilm(config: BiLMConfig, path: Path) -> BiLM:
    """The biLM of a config and a safetensors file; see `build`."""
    model = empty(config, read_shapes(path))
    return fill(model, read_tensors(path, model.state_dict()), str(path))


def empty(config: BiLMConfig, found: Shapes) -> BiLM:
    """A biLM without values, with what its config does not describe: a warm state if one was
    found, and dictionaries of the length in bytes that was found."""
    with torch.device("meta"):
        model = BiLM(config)
        if "warm_h" in found:
            model.warm_h, model.warm_c = model.initial_state("zero")
        for name in dict(model.char_cnn.named_buffers()):
            shape = found.get(f"char_cnn.{name}", (0,))
            setattr(model.char_cnn, name, torch.empty(shape, dtype=torch.uint8))
    return model


def fill(model: BiLM, tensors: Tensors, source: str) -> BiLM:
    """Give a biLM of `empty` its values, in float32; it is in evaluation mode."""
    weights = {n: t.float() if t.is_floating_point() else t for n, t in tensors.items()}
    with reading("the weights", source):
        model.load_state_dict(weights, assign=True)
    return model.eval()


def build(config: BiLMConfig, tensors: Tensors, source: str) -> BiLM:
    """A biLM of a config with given weights, in float32, in evaluation mode.

    Args:
        config: its shape.
        tensors: by parameter name, of any floating-point type.
        source: where they come from, for errors.

    Raises:
        ValueError: a tensor does not fit, or has values with which something overflows.
    """
    model = empty(config, {name: tuple(t.shape) for name, t in tensors.items()})
    check_tensors(model.state_dict(), tensors, source)
    return fill(model, tensors, source)


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
