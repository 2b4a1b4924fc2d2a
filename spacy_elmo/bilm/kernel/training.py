"""An LSTM layer with gradients, whose recurrence the kernel computes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..lstm_autograd import AutogradLSTM, Tensors
from ..lstm_pytorch import add_times
from ..lstm_weights import LSTMWeights
from ..sentence_batches import Packing
from .library import Kernel
from .lstm import check_batch
from .packing import Product, layer_structs


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

    def _pack(self, weight: torch.Tensor | None, is_gates: bool = False) -> Product | None:
        if weight is None:
            return None
        return Product(weight, None, self.kernel.width, is_gates, halves=False)

    def forward(self, packing: Packing, given: Tensors, for_backward: bool) -> Tensors:
        steps, (x, h0, c0) = check_batch(self.ih.shape, packing, *given), given
        gates = x.new_empty(*x.shape[:2], 4 * c0.shape[2])
        add_times(self.weights.bias.detach().unsqueeze(1), x, self.ih.mT, out=gates)
        h, c, out = h0.contiguous().clone(), c0.contiguous().clone(), x.new_empty(x.shape)
        cells = x.new_empty(*x.shape[:2], c0.shape[2])
        m = torch.empty_like(cells)  # σ(o) · tanh(c), what is projected
        hh, hr = self._pack(self.weights.hh, is_gates=True), self._pack(self.weights.hr)
        layers = layer_structs(self.weights, hh=hh, hr=hr)
        self.kernel.call("lstm_forward", layers, len(steps), steps, gates, h, c, cells, m, out)
        return [out, h, c, *([gates, cells, m] if for_backward else [])]

    def backward(
        self, packing: Packing, given: Tensors, saved: Tensors, gradients: Tensors
    ) -> Sequence[torch.Tensor | None]:
        steps, (x, h0, c0) = check_batch(self.ih.shape, packing, *given), given
        out, gates, cells, m = saved
        d_out, *d_states = (gradient.contiguous() for gradient in gradients)
        d_h, d_c = (state.clone() for state in d_states)
        d_hs, d_gates, c0 = torch.empty_like(out), torch.empty_like(gates), c0.contiguous()
        hr_mT = None if self.weights.hr is None else self.weights.hr.mT
        hh, hr = self._pack(self.weights.hh.mT), self._pack(hr_mT)
        layers = layer_structs(self.weights, hh=hh, hr=hr)
        arguments = gates, cells, c0, out, d_out, d_h, d_c, d_hs, d_gates
        self.kernel.call("lstm_backward", layers, len(steps), steps, *arguments)
        d_bias, dtype, P = d_gates.sum(dim=1), self.ih.dtype, x.shape[2]
        h_prev = torch.cat([h0, out[:, packing.previous]], dim=1)
        inputs, d_gates = torch.cat([x, h_prev], dim=2).to(dtype), d_gates.to(dtype)
        d_weights = torch.bmm(d_gates.mT, inputs).to(x.dtype)
        d_hr = None
        if self.weights.hr is not None:
            d_hr = torch.bmm(d_hs.to(dtype).mT, m.to(dtype)).to(x.dtype)
        d_x = torch.bmm(d_gates, self.ih).to(x.dtype)
        return [d_x, d_h, d_c, d_weights[..., :P], d_weights[..., P:], d_bias, d_hr]
