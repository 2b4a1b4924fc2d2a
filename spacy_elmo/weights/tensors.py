"""Tensors in the safetensors format, checked before and after they are read, and biLMs of them."""

from __future__ import annotations

from collections import UserDict
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


class TensorFile(UserDict[str, torch.Tensor]):
    """The tensors of a safetensors file; a copy is read whenever one is asked for.

    Args:
        path: the file. Names and shapes alone are read now.

    Raises:
        ValueError: it is missing or damaged.
    """

    def __init__(self, path: Path):
        self.path = path
        with reading("the weights", path), safe_open(path, "pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            self.shapes = {name: tuple(each.get_shape()) for name, each in slices.items()}
        super().__init__(dict.fromkeys(self.shapes))

    def __getitem__(self, name: str) -> torch.Tensor:
        # A map for each, so that what was copied does not stay in memory.
        with reading("the weights", self.path), safe_open(self.path, "pt") as file:
            return file.get_tensor(name).clone()


def shapes_of(tensors: Tensors) -> dict[str, tuple[int, ...]]:
    """The shapes by name; no value is read."""
    if isinstance(tensors, TensorFile):
        return tensors.shapes
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def check_tensors(expected: Tensors, found: Tensors, source: str) -> Tensors:
    """Return the tensors if they have the expected names and shapes, and floating-point values with
    which nothing overflows, or integers of the expected type; else raise a ValueError.

    No value is read unless all names and shapes fit.
    """
    shapes, read = shapes_of(found), {}
    missing, unknown = sorted(set(expected) - set(shapes)), sorted(set(shapes) - set(expected))
    if missing or unknown:
        raise ValueError(
            f"{source} does not fit its config: missing tensors {missing[:5]}, unknown "
            f"{unknown[:5]}."
        )
    for name, tensor in expected.items():
        if shapes[name] != tuple(tensor.shape):
            raise ValueError(
                f"{source}: tensor '{name}' has the shape {shapes[name]}, but the config requires "
                f"{tuple(tensor.shape)}."
            )
    for name, like in expected.items():
        tensor, dtype = found[name], like.dtype
        read[name] = tensor
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
    return read


def build(config: BiLMConfig, tensors: Tensors, source: str) -> BiLM:
    """A biLM of a config with given weights, in float32, in evaluation mode.

    Args:
        config: its shape, apart from whether there is a warm state, and from the lengths of its
            dictionaries in bytes.
        tensors: by parameter name, of any floating-point type.
        source: where they come from, for errors.

    Raises:
        ValueError: a tensor does not fit, or has values with which something overflows.
    """
    shapes = shapes_of(tensors)
    with torch.device("meta"):
        model = BiLM(config)
        if "warm_h" in shapes:
            model.warm_h, model.warm_c = model.initial_state("zero")
        for name in dict(model.char_cnn.named_buffers()):
            shape = shapes.get(f"char_cnn.{name}", (0,))
            setattr(model.char_cnn, name, torch.empty(shape, dtype=torch.uint8))
    found = check_tensors(model.state_dict(), tensors, source).items()
    floats = {n: t.float() if t.is_floating_point() else t for n, t in found}
    with reading("the weights", source):
        model.load_state_dict(floats, assign=True)
    return model.eval()


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
