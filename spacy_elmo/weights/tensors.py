"""Tensors in the safetensors format, checked before and after they are read, and biLMs of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save as save_tensors

from ..bilm import int8
from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..util.files import reading, write_bytes

DTYPES = {  # as the format names them
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U8": torch.uint8, "BOOL": torch.bool,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
}  # fmt: skip
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
TOO_LARGE = 1e18  # its square still is a float32
Tensors = Mapping[str, torch.Tensor]
Read = Callable[[str], torch.Tensor]  # the values of one, by its name


def stored(path: Path) -> tuple[Tensors, Read]:
    """The tensors of a safetensors file without their values, and a function that copies one.

    Raises:
        ValueError: it is missing or damaged.
    """

    def read(name: str) -> torch.Tensor:
        # A map for each, so that what was copied does not stay in memory.
        with reading("the weights", path), safe_open(path, "pt") as file:
            return file.get_tensor(name).clone()

    found = {}
    with reading("the weights", path), safe_open(path, "pt") as file:
        for name in file.keys():  # noqa: SIM118
            like = file.get_slice(name)
            if (dtype := DTYPES.get(like.get_dtype())) is None:
                raise ValueError(f"the tensor '{name}' is of the type {like.get_dtype()}, no float")
            found[name] = torch.empty(like.get_shape(), dtype=dtype, device="meta")
    return found, read


def check_shapes(
    expected: Tensors, source: str, found: Tensors, config: str = "its config"
) -> None:
    """Raise a ValueError unless the tensors that were found in a source have the names and shapes
    that a config requires, and are floating-point where it does, or integers of the same type. No
    value is read."""
    missing, unknown = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing or unknown:
        raise ValueError(
            f"{source} does not fit {config}: missing tensors {missing[:5]}, unknown {unknown[:5]}."
        )
    for name, like in expected.items():
        shape, dtype = found[name].shape, found[name].dtype
        allowed = FLOATS if like.dtype.is_floating_point else (like.dtype,)
        if shape != like.shape or dtype not in allowed:
            raise ValueError(
                f"{source}: tensor '{name}' has the shape {tuple(shape)} and is of the type "
                f"{dtype}, expected by {config}: {tuple(like.shape)} of {allowed[0]}."
            )


def check_tensors(
    expected: Tensors, source: str, found: Tensors, read: Read | None = None
) -> dict[str, torch.Tensor]:
    """Return tensors, floats in float32, if they fit and no value is far too large.

    Args:
        expected: the names, shapes and types.
        source: where they come from, for errors.
        found: the tensors, or these without values.
        read: gives the values of one; it is not called unless all fit.

    Raises:
        ValueError: see `check_shapes`; or a value is not finite, or far too large.
    """
    check_shapes(expected, source, found)
    tensors = {}
    for name, like in expected.items():
        tensor = read(name) if read else found[name]
        check_shapes({name: like}, source, {name: tensor})  # the file may be another one now
        # The extremes are not finite if any value is not, and finding them takes no memory.
        if tensor.numel() and not all(abs(each.item()) < TOO_LARGE for each in tensor.aminmax()):
            raise ValueError(f"{source}: tensor '{name}' is not finite, or far too large.")
        tensors[name] = tensor.float() if tensor.is_floating_point() else tensor
    return tensors


def head_like(n_words: int, config: BiLMConfig) -> dict[str, torch.Tensor]:
    """The head of a language model of V words, without values: ``weight`` ``(V, P)`` and ``bias``
    ``(V,)``."""
    with torch.device("meta"):
        return {"weight": torch.empty(n_words, config.projection_dim), "bias": torch.empty(n_words)}


def build(config: BiLMConfig, source: str, found: Tensors, read: Read | None = None) -> BiLM:
    """A biLM of a config with given weights, in float32, in evaluation mode.

    Args:
        config: its shape, apart from whether there is a warm state, and from the lengths of its
            dictionaries in bytes.
        source, found, read: see `check_tensors`; by parameter name.

    Raises:
        ValueError: a tensor does not fit, or has a value that is not finite, or far too large.
    """
    with torch.device("meta"):
        model = BiLM(config)
        if "warm_h" in found:
            model.warm_h, model.warm_c = model.initial_state("zero")
        for name in dict(model.char_cnn.named_buffers()):
            like = found.get(f"char_cnn.{name}", torch.empty(0))
            setattr(model.char_cnn, name, torch.empty(like.shape, dtype=torch.uint8))
        expected = model.state_dict()
        expected = int8.stored_like(expected) if config.int8 else expected
    tensors = check_tensors(expected, source, found, read)
    with reading("the weights", source):
        model.load_state_dict(int8.join_gates(tensors) if config.int8 else tensors, assign=True)
        if config.int8:
            int8.split_gates(model.state_dict())  # they are rounded
    return model.eval()


def stored_tensors(model: BiLM, half: bool = False) -> dict[str, torch.Tensor]:
    """The tensors of a biLM as its file has them, see `compact`; weights of gates that are rounded
    to int8 as numbers and scales.

    Raises:
        ValueError: the config says that they are rounded, but they are not.
    """
    state = model.state_dict()
    if not model.config.int8:
        return compact(state, half)
    parts = int8.split_gates(state)
    scales = {name: parts.pop(name).cpu() for name in list(parts) if name.endswith(int8.SCALE)}
    return compact(parts, half) | scales


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
