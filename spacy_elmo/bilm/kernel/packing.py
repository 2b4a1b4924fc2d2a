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
    """A packed matrix, or one for each direction.

    Args:
        weight: ``(columns, inputs)`` float32, or ``(2, columns, inputs)``.
        bias: ``(columns,)``, or ``(2, columns)``; or None.
        width: see `Kernel`.
        is_gates: the columns are the four gates of LSTM cells; a panel has all four of each cell.
        int8: the weights are rounded, see `int8.split`.
        halves: keep weights in float16 if it holds them exactly; they are read faster.

    Attributes:
        structs: the matrices for C; they point to tensors of this object.

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
        columns, inputs = weight.shape[-2:]
        weight = weight.detach().view(-1, columns, inputs)
        tensors = {} if bias is None else {"bias": bias.detach().view(-1, columns, 1)}
        if int8:
            weight, scales = split(weight)
            sums = weight.sum(dim=2, dtype=torch.int32)
            tensors |= {"scales": scales.unsqueeze(2), "sums": sums.unsqueeze(2)}
        elif halves and torch.equal((half := weight.half()).float(), weight):
            weight = half
        tensors = {name: panels(each, width, is_gates) for name, each in tensors.items()}
        packed = panels(weight, width, is_gates)
        if int8:  # four inputs side by side
            packed = F.pad(packed, (0, 0, 0, 0, 0, -inputs % 4))
            packed = packed.unflatten(2, (-1, 4)).permute(0, 1, 2, 4, 5, 3)
        tensors["weights"] = packed
        self._tensors = {name: each.contiguous() for name, each in tensors.items()}
        self.structs = []
        for i in range(len(weight)):
            found = {name: each[i].data_ptr() for name, each in self._tensors.items()}
            self.structs.append(ProductStruct(inputs, columns, KINDS[weight.dtype], **found))


def panels(columns: torch.Tensor, width: int, is_gates: bool) -> torch.Tensor:
    """``(n, columns, inputs)`` as ``(n, n_panels, inputs, 4, width)``, zeros added.

    Args:
        columns: the columns of matrices.
        width, is_gates: see `Product`.
    """
    if is_gates:
        gates = columns.unflatten(1, (4, -1))
        padded = F.pad(gates, (0, 0, 0, -gates.shape[2] % width))
        return padded.unflatten(2, (-1, width)).permute(0, 2, 4, 1, 3)
    padded = F.pad(columns, (0, 0, 0, -columns.shape[1] % (4 * width)))
    return padded.unflatten(1, (-1, 4, width)).permute(0, 1, 4, 2, 3)


def check_float32(*tensors: torch.Tensor | None) -> None:
    """Raise a ValueError unless all tensors are float32 on a CPU, which C takes them for."""
    for each in tensors:
        if each is not None and (each.dtype != torch.float32 or each.device.type != "cpu"):
            raise ValueError(
                f"The kernel reads float32 weights on a CPU, found {each.dtype} on {each.device}: "
                f"convert and move the whole biLM."
            )


def layer_structs(weights: LSTMWeights, **products: Product | None) -> Any:
    """Both directions of a layer for C, as an array.

    Args:
        weights: the layer's weights, for its clips and its size.
        products: packed ``ih``, ``hh`` and ``hr``, where C reads them; the array keeps them.
    """
    structs: Any = (LayerStruct * 2)()
    structs.products = products
    clips = weights.cell_clip, weights.proj_clip
    cell_clip, proj_clip = (math.inf if clip is None else clip for clip in clips)
    for d, struct in enumerate(structs):
        struct.cells = weights.ih.shape[1] // 4
        struct.cell_clip, struct.proj_clip = cell_clip, proj_clip
        for name, product in products.items():
            if product is not None:
                setattr(struct, name, product.structs[d])
    return structs
