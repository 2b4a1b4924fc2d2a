"""Tensors in safetensors files, checked before and after they are read, and biLMs from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save as save_tensors

from ..bilm import int8
from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..util.files import naming_errors, write_bytes
from ..util.threads import threads_for

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
TOO_LARGE = 1e18  # its square is still a float32
Tensors = Mapping[str, torch.Tensor]
Read = Callable[[str], torch.Tensor]  # reads a tensor by its name


def open_tensors(path: Path, what: str = "the weights") -> tuple[Tensors, Read]:
    """Open a safetensors file.

    Args:
        path: the file.
        what: what it has, for errors.

    Returns:
        The tensors without values, and a function that reads one by its name.

    Raises:
        ValueError: it is missing or damaged.
    """

    def read(name: str) -> torch.Tensor:
        # The file is mapped for each tensor, so that no other one stays in memory.
        with naming_errors(what, path), safe_open(path, "pt") as file:
            return file.get_tensor(name).clone()

    tensors = {}
    with naming_errors(what, path), safe_open(path, "pt") as file:
        for name in file.keys():  # noqa: SIM118
            view = file.get_slice(name)
            shape = view.get_shape()
            dtype = (view[:0] if shape else file.get_tensor(name)).dtype
            tensors[name] = torch.empty(shape, dtype=dtype, device="meta")
    return tensors, read


def check_shapes(
    expected: Tensors, source: str, found: Tensors, config: str = "its config"
) -> None:
    """Check the names, shapes and types of tensors; no value is read.

    Args:
        expected: the tensors that a config requires. For a floating tensor, any floating type will
            do.
        source: where the tensors come from, for errors.
        found: the tensors.
        config: what requires them, for errors.

    Raises:
        ValueError: a tensor is missing or unknown, or has another shape or type.
    """
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


@threads_for(0)
def check_tensors(
    expected: Tensors, source: str, found: Tensors, read: Read | None = None
) -> dict[str, torch.Tensor]:
    """Return tensors that fit, floats in float32.

    Args:
        expected, source: see `check_shapes`.
        found: the tensors; if there is `read`, they need no values.
        read: reads a tensor; it is not called unless all tensors fit.

    Raises:
        ValueError: see `check_shapes`; or a value is not finite, or far too large.
    """
    check_shapes(expected, source, found)
    tensors = {}
    for name, like in expected.items():
        tensor = read(name) if read else found[name]
        check_shapes({name: like}, source, {name: tensor})  # the file may have been replaced
        # If a value is not finite, neither are the extremes, which take no memory to find.
        if tensor.numel() and not all(abs(x.item()) < TOO_LARGE for x in tensor.aminmax()):
            raise ValueError(f"{source}: tensor '{name}' is not finite, or far too large.")
        tensors[name] = tensor.float() if tensor.is_floating_point() else tensor
    return tensors


def empty_head(n_words: int, config: BiLMConfig) -> dict[str, torch.Tensor]:
    """The head for V words, without values: ``weight`` ``(V, P)`` and ``bias`` ``(V,)``."""
    with torch.device("meta"):
        return {"weight": torch.empty(n_words, config.projection_dim), "bias": torch.empty(n_words)}


@threads_for(0)
def build(config: BiLMConfig, source: str, found: Tensors, read: Read | None = None) -> BiLM:
    """Build a biLM from tensors, in float32, in evaluation mode.

    Args:
        config: decides which tensors there are, except the warm state, and their shapes, except
            those of the dictionaries.
        source, found, read: see `check_tensors`. Names are those of parameters.

    Raises:
        ValueError: see `check_tensors`.
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
    with naming_errors("the weights", source):
        model.load_state_dict(int8.join_gates(tensors) if config.int8 else tensors, assign=True)
        if config.int8:
            int8.split_gates(model.state_dict())  # an error if the gates are not rounded
    return model.eval()


@threads_for(0)
def stored(model: BiLM, half: bool = False) -> dict[str, torch.Tensor]:
    """The tensors that the file of a biLM has, see `compact`. Gates in int8 are stored as integers
    and scales.

    Raises:
        ValueError: the config says that gates are in int8, but they are not rounded.
    """
    state = model.state_dict()
    if not model.config.int8:
        return compact(state, half)
    parts = int8.split_gates(state)
    scales = {name: parts.pop(name).cpu() for name in list(parts) if name.endswith(int8.SCALE)}
    return compact(parts, half) | scales


@threads_for(0)
def compact(tensors: Tensors, half: bool = False) -> dict[str, torch.Tensor]:
    """Move tensors to the CPU, floats in half precision where that is exact.

    Args:
        tensors: the tensors by name.
        half: round all floats to half precision.
    """
    stored: dict[str, torch.Tensor] = {}
    for name, original in tensors.items():
        tensor = original.detach().cpu()
        rounded = tensor.half() if tensor.is_floating_point() else tensor
        is_wanted = half or torch.equal(rounded.to(tensor.dtype), tensor)
        stored[name] = (rounded if is_wanted else tensor).contiguous()
    return stored


def write_tensors(tensors: Tensors, path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file, whole or not at all.

    Raises:
        OSError: the file cannot be written, for example because the disk is full.
    """
    # `save_file` hides the system's error, and makes files that only their owner can read.
    write_bytes(path, save_tensors({n: t.contiguous() for n, t in tensors.items()}, metadata))
