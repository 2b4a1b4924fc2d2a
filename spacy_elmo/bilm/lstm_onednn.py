"""An LSTM layer without gradients on a CPU, by products with weights that oneDNN has packed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch

from .lstm_weights import LSTMWeights
from .sentence_batches import Packing
from .torch_precision import round_up


class OneDNNLSTM:
    """One layer; `torch.bmm` would pack the weights anew at each step, and take twice as long in
    float32 on an AMD.

    A step multiplies ``[x_t; h_{t-1}]`` once. As ``tanh(z) = 2σ(2z) − 1``, the weights of g are
    doubled, so that one pass makes σ of all gates, and the projection is negated: it reads
    ``−σ(o) · tanh(c) = σ(o) − 2σ(o)σ(2c)``.

    Args:
        weights: of the layer.
        dtype: of the operands of the products, which round to it; all else is float32.
    """

    def __init__(self, weights: LSTMWeights, dtype: torch.dtype):
        ih, hh, bias, hr, self.cell_clip, self.proj_clip = weights
        self.dtype, P, D = dtype, ih.shape[2], ih.shape[1] // 4
        # oneDNN adds up a row of many numbers in another order if it is alone.
        self.fewest_rows = 1 if max(2 * P, D) <= 1024 else 2
        weight, bias = torch.cat([ih, hh], dim=2).detach(), bias.detach()  # (2, 4D, 2P), (2, 4D)
        for each in (weight, bias):
            each[:, 2 * D : 3 * D] *= 2
        self.weight, self.bias = self._packed(weight), bias.to(dtype)
        self.weight_hr = None if hr is None else self._packed(-hr.detach())

    def _packed(self, weight: torch.Tensor) -> list[torch.Tensor]:
        """The weights of each direction, ``(2, n_out, n_in)``."""
        return [torch.ops.mkldnn._reorder_linear_weight(w) for w in weight.to(self.dtype)]

    def __call__(
        self, x: torch.Tensor, packing: Packing, h0: torch.Tensor, c0: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Read a packed batch; see `LSTMLayer.forward`."""
        (_, N, P), (_, B, D) = x.shape, c0.shape
        out, h_n, c_n = torch.empty_like(x), torch.empty_like(h0), c0.clone()
        times = torch.ops.mkldnn._linear_pointwise
        plain: Any = ("none", [], "")
        # Products take the rows of later tokens, too, see `round_up`; what they make is not used.
        inputs = x.new_zeros(N + B, 2 * P, dtype=self.dtype)  # [x_t; h_{t-1}] of each token
        sigmoids = x.new_empty(B, D)
        rows: list[int] = round_up(np.array(packing.batch_sizes), self.fewest_rows).tolist()
        outputs = x.new_zeros(rows[0], D, dtype=self.dtype)
        for d, (x_d, out_d, h_d, c_d) in enumerate(zip(x, out, h_n, c_n, strict=True)):
            weight, bias = self.weight[d], self.bias[d]
            inputs[:N, :P] = x_d
            inputs[:B, P:] = h0[d]
            steps = pairwise([*packing.steps, (N, 0)])
            for n_rows, ((start, size), (after, remaining)) in zip(rows, steps, strict=True):
                gates = times(inputs[start : start + n_rows], weight, bias, *plain)[:size].float()
                i, f, g, o = gates.sigmoid_().split(D, dim=1)  # (size, D) each
                c = c_d[:size].mul_(f).addcmul_(i, g, value=2).sub_(i)
                if self.cell_clip is not None:
                    c.clamp_(-self.cell_clip, self.cell_clip)
                s = torch.mul(c, 2, out=sigmoids[:size]).sigmoid_()
                m = torch.addcmul(o, o, s, value=-2)  # -σ(o) · tanh(c)
                h = out_d[start : start + size]
                if self.weight_hr is None:
                    torch.neg(m, out=h)
                else:
                    outputs[:size] = m
                    h.copy_(times(outputs[:n_rows], self.weight_hr[d], None, *plain)[:size])
                    if self.proj_clip is not None:
                        h.clamp_(-self.proj_clip, self.proj_clip)
                inputs[after : after + remaining, P:] = h[:remaining]
                h_d[remaining:size] = h[remaining:]  # sentences that have ended
        return out, h_n, c_n
