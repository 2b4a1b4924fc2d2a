"""An LSTM layer that the kernel computes."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import torch

from ..lstm_weights import LSTMWeights
from ..sentence_batches import Packing
from .library import Kernel, LayerStruct
from .packing import Product


class KernelLSTM:
    """Computes one layer without gradients. The weights are packed once.

    Args:
        weights: the layer's weights, float32 on a CPU.
        kernel: what computes it.
        int8: the weights of the gates are rounded.
    """

    def __init__(self, weights: LSTMWeights, kernel: Kernel, int8: bool = False):
        ih, hh, bias, hr, cell_clip, proj_clip = weights
        self.kernel, width = kernel, kernel.width
        self.sizes = ih.shape[2], ih.shape[1] // 4  # P, D
        self._kept, self._structs = [], []
        for d in range(2):
            products = [
                Product(ih[d], bias[d], width, is_gates=True, int8=int8),
                Product(hh[d], None, width, is_gates=True, int8=int8),
                *([] if hr is None else [Product(hr[d], None, width)]),
            ]
            clips = (math.inf if clip is None else clip for clip in (cell_clip, proj_clip))
            self._kept.append(products)  # the structures point into them
            struct = LayerStruct(cells=self.sizes[1])
            for name, product in zip(("ih", "hh", "hr"), products, strict=False):
                setattr(struct, name, product.struct)
            struct.cell_clip, struct.proj_clip = clips
            self._structs.append(struct)

    def __call__(
        self, x: torch.Tensor, packing: Packing, h0: torch.Tensor, c0: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Read a packed batch; see `LSTMLayer.forward`."""
        (P, D), n, x = self.sizes, len(packing.sorted_indices), x.contiguous()
        sizes = packing.batch_sizes
        if sizes[:1] != [n] or sizes[-1] < 1 or sizes != sorted(sizes, reverse=True):
            raise ValueError(f"The steps of {n} sentences have the sizes {sizes[:9]}, not falling.")
        out, h, c = torch.empty_like(x), h0.contiguous().clone(), c0.contiguous().clone()
        if x.shape != (2, sum(sizes), P) or h.shape != (2, n, P) or c.shape != (2, n, D):
            raise ValueError(f"The inputs have the shape {tuple(x.shape)}, not that of the batch.")
        if any(each.dtype != torch.float32 for each in (x, h, c)):
            raise ValueError("The kernel reads float32.")
        steps = np.array(sizes, dtype=np.int32)
        for d, struct in enumerate(self._structs):
            given = ctypes.byref(struct), len(steps), steps, x[d], h[d], c[d], out[d]
            self.kernel.call("lstm", *given)
        return out, h, c
