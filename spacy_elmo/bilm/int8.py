"""Weights of LSTM gates in eight bits: whole numbers from −127 to 127, times a scale for each row.

The scale has 16 significant bits, so that each product is an exact float32: rounded weights are
ordinary parameters, from which numbers and scales can be found again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

STEPS = 127  # of a row's largest absolute value
SMALLEST = 1e-30  # a row of smaller inputs is zeros
SCALE = "_scale"  # ends the name of a row's scales in a file


def round_gates(model: Any) -> Any:
    """Round the weights of all gates in place, and say so in the config."""
    with torch.no_grad():
        for layer in model.lstm:
            for weight in (layer.weight_ih, layer.weight_hh):
                scale = _short(weight.abs().amax(dim=-1, keepdim=True) / STEPS)
                numbers = _divide(weight, scale).clamp_(-STEPS, STEPS)
                weight.copy_(numbers * scale + 0.0)  # no number is -0
    model.config = replace(model.config, int8=True)
    model.warm_h = model.warm_c = None  # it was computed from other weights
    model.clear_caches()
    return model


def split(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rounded weights ``(…, K)`` as numbers of the same shape, int8, and scales ``(…,)``.

    Raises:
        ValueError: the weights are not rounded.
    """
    scale = weight.abs().amax(dim=-1) / STEPS
    numbers = _divide(weight, scale.unsqueeze(-1))
    if not torch.equal(numbers * scale.unsqueeze(-1), weight):
        raise ValueError(
            "The weights of the gates are not rounded to int8, but the biLM's config says so: set "
            "its int8 to false, or round them with `elmo convert --int8`."
        )
    return numbers.to(torch.int8), scale


def join(numbers: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Join what `split` has split, in float32."""
    return numbers.float() * scale.unsqueeze(-1)


def split_gates(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors of a biLM with the weights of its gates split."""
    found: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        if is_gate(name):
            numbers, scale = split(tensor.detach().float())
            found |= {name: numbers, name + SCALE: scale}
        else:
            found[name] = tensor
    return found


def stored_like(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What `split_gates` would return, as tensors with names, shapes and types only."""
    found = dict(tensors)
    for name in filter(is_gate, tensors):
        found[name] = torch.empty_like(tensors[name], dtype=torch.int8)
        found[name + SCALE] = torch.empty(tensors[name].shape[:-1], device="meta")
    return found


def join_gates(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Join the gates that `split_gates` has split."""
    return {
        name: join(tensor, tensors[name + SCALE]) if name + SCALE in tensors else tensor
        for name, tensor in tensors.items()
        if not name.endswith(SCALE)
    }


def round_rows(x: torch.Tensor) -> torch.Tensor:
    """Inputs of the gates, rounded to 255 steps of a row's largest absolute value."""
    most = x.abs().amax(dim=-1, keepdim=True)
    return torch.where(most <= SMALLEST, 0.0, (x * (STEPS / most)).round() * (most / STEPS))


def is_gate(name: str) -> bool:
    """Tell whether a parameter of a biLM has the weights of gates."""
    return name.startswith("lstm.") and name.endswith(("weight_ih", "weight_hh"))


def _divide(weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Whole numbers; zeros in a row of zeros."""
    return torch.where(scale > 0, weight / scale, 0.0).round()


def _short(scale: torch.Tensor) -> torch.Tensor:
    """Numbers rounded to 16 significant bits."""
    mantissa, exponent = torch.frexp(scale)
    return torch.ldexp((mantissa * 2**16).round() / 2**16, exponent)
