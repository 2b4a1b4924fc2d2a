"""Weights as the kernel reads them: columns of a product in panels of four vectors."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F

from ..int8 import split
from ..lstm_weights import LSTMWeights
from .library import KINDS, LayerStruct, ProductStruct


class Product:
    """A packed matrix.

    Args:
        weight: ``(columns, inputs)`` float32.
        bias: ``(columns,)``, or None.
        width: see `Kernel`.
        is_gates: the columns are the four gates of LSTM cells; a panel has all four of each cell.
        int8: the weights are rounded, see `int8.split`.
        halves: keep weights in float16 if it holds them exactly; they are read faster.

    Attributes:
        struct: the matrix for C; it points to tensors of this object.

    Raises:
        ValueError: the weights are not float32 on a CPU.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        width: int,
        is_gates: bool = False,
        int8: bool = False,
        halves: bool = True,
    ):
        check_float32(weight, bias)
        columns, inputs = weight.shape
        pack = panels_of_gates if is_gates else panels
        weight, tensors = weight.detach(), {}
        if int8:
            numbers, scale = split(weight)
            padded = F.pad(pack(numbers, width), (0, -inputs % 4))
            tensors["weights"] = padded.unflatten(3, (-1, 4)).permute(0, 3, 1, 2, 4)
            tensors["scales"] = pack(scale, width)
            tensors["sums"] = pack(numbers.sum(dim=1, dtype=torch.int32), width)
        else:
            if halves and torch.equal((half := weight.half()).float(), weight):
                weight = half
            tensors["weights"] = pack(weight, width).permute(0, 3, 1, 2)
        if bias is not None:
            tensors["bias"] = pack(bias.detach(), width)
        self._tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
        self.struct = ProductStruct(inputs, columns, KINDS[tensors["weights"].dtype])
        for name, tensor in self._tensors.items():
            setattr(self.struct, name, tensor.data_ptr())


def check_float32(*tensors: torch.Tensor | None) -> None:
    """Raise a ValueError unless all tensors are float32 on a CPU, which C takes them for."""
    for each in tensors:
        if each is not None and (each.dtype != torch.float32 or each.device.type != "cpu"):
            raise ValueError(
                f"The kernel reads float32 weights on a CPU, found {each.dtype} on {each.device}: "
                f"convert and move the whole biLM."
            )


def layer_struct(weights: LSTMWeights, **products: Product) -> LayerStruct:
    """One direction of a layer for C.

    Args:
        weights: the layer's weights, for its clips and its size.
        products: packed ``ih``, ``hh`` and ``hr``, where C reads them; the structure keeps them.
    """
    struct = LayerStruct(cells=weights.ih.shape[1] // 4)
    clips = (math.inf if clip is None else clip for clip in (weights.cell_clip, weights.proj_clip))
    struct.cell_clip, struct.proj_clip = clips
    for name, product in products.items():
        setattr(struct, name, product.struct)
    struct.products = products
    return struct


def panels(columns: torch.Tensor, width: int) -> torch.Tensor:
    """``(columns, …)`` as ``(n_panels, 4, width, …)``, zeros added."""
    return _padded(columns, 4 * width).unflatten(0, (-1, 4, width))


def panels_of_gates(columns: torch.Tensor, width: int) -> torch.Tensor:
    """``(4 cells, …)`` as ``(n_panels, 4, width, …)``, zeros added to the cells of each gate."""
    gates = [_padded(gate, width).unflatten(0, (-1, width)) for gate in columns.chunk(4)]
    return torch.stack(gates, dim=1)


def _padded(columns: torch.Tensor, step: int) -> torch.Tensor:
    missing: Any = [0, 0] * (columns.dim() - 1) + [0, -len(columns) % step]
    return F.pad(columns, missing)
