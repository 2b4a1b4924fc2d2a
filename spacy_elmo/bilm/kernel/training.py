"""An LSTM layer with gradients, whose recurrence the kernel computes."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch

from ...util.threads import prefetch_map
from ..lstm_autograd import AutogradLSTM, Tensors
from ..lstm_pytorch import add_times
from ..lstm_weights import LSTMWeights
from ..sentence_batches import Packing
from .library import Kernel, LayerStruct
from .packing import Product


class KernelTrainingLSTM(AutogradLSTM):
    """One layer, forward and backward.

    The kernel multiplies what depends on the step before, in float32. PyTorch multiplies the rest,
    for all steps at once: the inputs, their gradients, and those of the weights.

    Args:
        weights: float32 on a CPU.
        kernel: computes the recurrence.
        dtype: the type of the operands of PyTorch's products.
    """

    def __init__(self, weights: LSTMWeights, kernel: Kernel, dtype: torch.dtype):
        super().__init__(weights)
        self.kernel, self.ih = kernel, weights.ih.detach().to(dtype)

    def forward(self, packing: Packing, given: Tensors, for_backward: bool) -> Tensors:
        x, h0, c0 = given
        gates = x.new_empty(*x.shape[:2], 4 * c0.shape[2])
        add_times(self.weights.bias.detach().unsqueeze(1), x, self.ih.mT, out=gates)
        h, c, out = h0.contiguous().clone(), c0.contiguous().clone(), torch.empty_like(x)
        cells = x.new_empty(*x.shape[:2], c0.shape[2])
        m = torch.empty_like(cells)  # σ(o) · tanh(c), what is projected
        steps = np.array(packing.batch_sizes, dtype=np.int32)

        def read(d: int) -> None:
            _, hh, _, hr = self.weights[:4]
            product = Product(hh[d], None, self.kernel.width, is_gates=True, halves=False)
            layer = _Layer(self.weights, product, hr, d)
            states = gates[d], h[d], c[d], cells[d], m[d], out[d]
            self.kernel.call("lstm_forward", layer.struct, len(steps), steps, *states)

        _each_direction(read)
        return [out, h, c, *([gates, cells, m] if for_backward else [])]

    def backward(
        self, packing: Packing, given: Tensors, saved: Tensors, gradients: Tensors
    ) -> Sequence[torch.Tensor | None]:
        (x, h0, c0), (out, gates, cells, m) = given, saved
        d_out, *d_states = (gradient.contiguous() for gradient in gradients)
        d_h, d_c = (state.clone() for state in d_states)
        d_hs, d_gates, c0 = torch.empty_like(out), torch.empty_like(gates), c0.contiguous()
        steps = np.array(packing.batch_sizes, dtype=np.int32)

        def read_back(d: int) -> None:
            _, hh, _, hr = self.weights[:4]
            transposed = None if hr is None else hr.mT
            product = Product(hh[d].mT, None, self.kernel.width, halves=False)
            layer = _Layer(self.weights, product, transposed, d)
            states = gates[d], cells[d], c0[d], out[d], d_out[d]
            results = d_h[d], d_c[d], d_hs[d], d_gates[d]
            self.kernel.call("lstm_backward", layer.struct, len(steps), steps, *states, *results)

        _each_direction(read_back)
        d_bias, dtype, P = d_gates.sum(dim=1), self.ih.dtype, x.shape[2]
        h_prev = torch.cat([h0, out[:, packing.previous]], dim=1)
        inputs, d_gates = torch.cat([x, h_prev], dim=2).to(dtype), d_gates.to(dtype)
        d_weights = torch.bmm(d_gates.mT, inputs).to(x.dtype)
        d_hr = None
        if self.weights.hr is not None:
            d_hr = torch.bmm(d_hs.to(dtype).mT, m.to(dtype)).to(x.dtype)
        d_x = torch.bmm(d_gates, self.ih).to(x.dtype)
        return [d_x, d_h, d_c, d_weights[..., :P], d_weights[..., P:], d_bias, d_hr]


class _Layer:
    """A direction of a layer as C reads it; it keeps the packed weights.

    Args:
        weights: the layer's; its clips are taken.
        hh: packed weights of the outputs of the step before.
        hr: weights of the projection, both directions, or None.
        d: the direction.
    """

    def __init__(self, weights: LSTMWeights, hh: Product, hr: torch.Tensor | None, d: int):
        clips = (weights.cell_clip, weights.proj_clip)
        layer = LayerStruct(cells=weights.ih.shape[1] // 4, hh=hh.struct)
        layer.cell_clip, layer.proj_clip = (math.inf if clip is None else clip for clip in clips)
        self._products = [hh]
        if hr is not None:
            self._products.append(Product(hr[d], None, hh.width, halves=False))
            layer.hr = self._products[1].struct
        self._layer = layer
        self.struct = ctypes.byref(layer)


def _each_direction(compute: Callable[[int], None]) -> None:
    """Both directions, on two threads if PyTorch has them."""
    for _, result in prefetch_map(compute, range(2), min(2, torch.get_num_threads())):
        result()
