"""An LSTM layer with gradients, whose recurrence the kernel computes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import torch

from ...util.threads import prefetch_map
from ..lstm_autograd import AutogradLSTM, Tensors
from ..lstm_pytorch import add_times
from ..lstm_weights import LSTMWeights
from ..sentence_batches import Packing
from .library import Kernel
from .lstm import check_batch
from .packing import Product, layer_struct


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

    def _pack(self, weight: torch.Tensor, is_gates: bool = False) -> Product:
        return Product(weight, None, self.kernel.width, is_gates, halves=False)

    def forward(self, packing: Packing, given: Tensors, for_backward: bool) -> Tensors:
        steps, (x, h0, c0) = check_batch(self.ih.shape, packing, *given), given
        gates = x.new_empty(*x.shape[:2], 4 * c0.shape[2])
        add_times(self.weights.bias.detach().unsqueeze(1), x, self.ih.mT, out=gates)
        h, c, out = h0.contiguous().clone(), c0.contiguous().clone(), x.new_empty(x.shape)
        cells = x.new_empty(*x.shape[:2], c0.shape[2])
        m = torch.empty_like(cells)  # σ(o) · tanh(c), what is projected

        def read(d: int) -> None:
            products = {"hh": self._pack(self.weights.hh[d], is_gates=True)}
            if self.weights.hr is not None:
                products["hr"] = self._pack(self.weights.hr[d])
            layer = layer_struct(self.weights, **products)
            states = gates[d], h[d], c[d], cells[d], m[d], out[d]
            self.kernel.call("lstm_forward", ctypes.byref(layer), len(steps), steps, *states)

        _each_direction(read)
        return [out, h, c, *([gates, cells, m] if for_backward else [])]

    def backward(
        self, packing: Packing, given: Tensors, saved: Tensors, gradients: Tensors
    ) -> Sequence[torch.Tensor | None]:
        steps, (x, h0, c0) = check_batch(self.ih.shape, packing, *given), given
        out, gates, cells, m = saved
        d_out, *d_states = (gradient.contiguous() for gradient in gradients)
        d_h, d_c = (state.clone() for state in d_states)
        d_hs, d_gates, c0 = torch.empty_like(out), torch.empty_like(gates), c0.contiguous()

        def read_back(d: int) -> None:
            products = {"hh": self._pack(self.weights.hh[d].mT)}
            if self.weights.hr is not None:
                products["hr"] = self._pack(self.weights.hr[d].mT)
            layer = layer_struct(self.weights, **products)
            states = gates[d], cells[d], c0[d], out[d], d_out[d]
            results = d_h[d], d_c[d], d_hs[d], d_gates[d]
            arguments = len(steps), steps, *states, *results
            self.kernel.call("lstm_backward", ctypes.byref(layer), *arguments)

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


def _each_direction(compute: Callable[[int], None]) -> None:
    """Both directions, on two threads if PyTorch has them."""
    for _, result in prefetch_map(compute, range(2), min(2, torch.get_num_threads())):
        result()
