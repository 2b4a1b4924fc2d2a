"""An LSTM layer by PyTorch's operators, forward and backward, on any device."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Sequence

import torch

from .int8 import round_rows
from .lstm_autograd import AutogradLSTM, Tensors
from .lstm_weights import LSTMWeights
from .sentence_batches import Packing
from .torch_precision import without_tf32

BYTES_AT_ONCE = 2**23  # of gates, where no gradient needs those of all steps


def add_times(
    to: torch.Tensor, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor
) -> torch.Tensor:
    """``to + a · b`` in ``out``, multiplied in the type of b."""
    if a.dtype == b.dtype:
        return torch.baddbmm(to, a, b, out=out)
    return torch.add(to, torch.bmm(a.to(b.dtype), b), out=out)


class OperatorLSTM(AutogradLSTM):
    """One layer, with one product per weight gradient instead of one per step.

    What does not depend on the recurrence is done for all steps at once, before the loop over
    them (input products) or after it (weight gradients); what remains inside is two small
    products and a few pointwise operations.

    Args:
        weights: the layer's weights.
        dtype: the type of the operands of products, which may be less precise than the rest.
        rounds: round the inputs of the gates as the kernel does for int8 weights; no gradients.
    """

    def __init__(self, weights: LSTMWeights, dtype: torch.dtype, rounds: bool = False):
        super().__init__(weights)
        self.read_inputs = round_rows if rounds else (lambda x: x)
        self.cell_clip, self.proj_clip = weights.cell_clip, weights.proj_clip
        self.ih, self.hh = (weight.detach().to(dtype) for weight in weights[:2])
        self.hr = None if weights.hr is None else weights.hr.detach().to(dtype)

    def forward(self, packing: Packing, given: Tensors, for_backward: bool) -> Tensors:
        x, h0, c0 = given
        x, N, D = self.read_inputs(x), x.shape[1], c0.shape[2]
        bias = self.weights.bias.detach().unsqueeze(1)
        ih, hh, hr = self.ih.mT, self.hh.mT, None if self.hr is None else self.hr.mT
        out = torch.empty_like(x)
        # Sentences that have ended leave their state: c is updated in place, in its first rows.
        h_n, c_n = torch.empty_like(h0), c0.clone()
        h, c = h0, c_n
        # Of all steps where a gradient needs them. Else memory is reused: blocks whose sizes fall
        # from step to step would leave gaps in it.
        n_tokens, n_rows = N, N
        if not for_backward:
            n_tokens, n_rows = max(1, BYTES_AT_ONCE // (8 * D * x.element_size())), h.shape[1]
        cells = x.new_empty(2, N, D) if for_backward else None
        tanhs = x.new_empty(2, n_rows, D)
        all_gates = x.new_empty(2, min(N, max(n_tokens, n_rows)), 4 * D)
        ends, end = [sum(step) for step in packing.steps], 0
        for number, (start, size) in enumerate(packing.steps):
            if start == end:  # what comes from x, for a stretch of steps
                first = start
                end = ends[max(number, bisect_right(ends, start + n_tokens) - 1)]
                from_x = all_gates[:, : end - first]
                add_times(bias, x[:, first:end], ih, out=from_x)
            if size < h.shape[1]:
                h_n[:, size : h.shape[1]] = h[:, size:]
                h, c = h[:, :size], c[:, :size]
            step = slice(start, start + size)
            gates = from_x[:, start - first : start - first + size]  # (2, size, 4D)
            add_times(gates, self.read_inputs(h), hh, out=gates)
            i, f, g, o = gates.split(D, dim=2)
            gates[..., : 2 * D].sigmoid_()
            g.tanh_()
            o.sigmoid_()
            c = c.mul_(f).addcmul_(i, g)
            if self.cell_clip is not None:
                c.clamp_(-self.cell_clip, self.cell_clip)
            tanh_c = torch.tanh(c, out=tanhs[:, step] if for_backward else tanhs[:, :size])
            h = tanh_c * o if for_backward else tanh_c.mul_(o)
            if hr is not None:
                h = torch.bmm(h.to(hr.dtype), hr).to(x.dtype)
                if self.proj_clip is not None:
                    h.clamp_(-self.proj_clip, self.proj_clip)
            out[:, step] = h
            if cells is not None:
                cells[:, step] = c
        h_n[:, : h.shape[1]] = h
        return [out, h_n, c_n, *([all_gates, cells, tanhs] if cells is not None else [])]

    def backward(
        self, packing: Packing, given: Tensors, saved: Tensors, gradients: Tensors
    ) -> Sequence[torch.Tensor | None]:
        (x, h0, c0), (out, gates, cells, tanh_c), (d_out, d_h_n, d_c_n) = given, saved, gradients
        ih, hh, hr, D = self.ih, self.hh, self.hr, c0.shape[2]
        i, f, g, o = gates.split(D, dim=2)  # each (2, N, D)
        c_prev = torch.cat([c0, cells[:, packing.previous]], dim=1)
        # Derivatives that need no recurrence, for all steps at once; sigmoid_backward(x, y) is
        # x · y · (1 − y), tanh_backward(x, y) is x · (1 − y²), each in one pass over the memory.
        aten = torch.ops.aten
        by_cell = gates.new_empty(*gates.shape[:2], 3 * D)  # of i, f, g by c
        d_i, d_f, d_g = by_cell.split(D, dim=2)
        aten.sigmoid_backward.grad_input(g, i, grad_input=d_i)
        aten.sigmoid_backward.grad_input(c_prev, f, grad_input=d_f)
        aten.tanh_backward.grad_input(i, g, grad_input=d_g)
        o_by_m = aten.sigmoid_backward(tanh_c, o)  # m = σ(o) · tanh(c), what is projected
        c_by_m = aten.tanh_backward(o, tanh_c)
        inside = None if self.cell_clip is None else cells.abs() < self.cell_clip
        if self.proj_clip is not None:
            h_inside = out.abs() < self.proj_clip
        d_gates = torch.empty_like(gates)
        d_hs = torch.empty_like(out)  # by h before its clip
        d_h, d_c = d_h_n.clone(), d_c_n.clone()  # packed rows, from step to step
        for start, size in reversed(packing.steps):
            step = slice(start, start + size)
            d_h_step = d_out[:, step] + d_h[:, :size]
            if self.proj_clip is not None:
                d_h_step *= h_inside[:, step]
            d_hs[:, step] = d_h_step
            d_m = d_h_step
            if hr is not None:
                d_m = torch.bmm(d_h_step.to(hr.dtype), hr).to(x.dtype)
            d_c_step = torch.addcmul(d_c[:, :size], d_m, c_by_m[:, step])
            if inside is not None:
                d_c_step *= inside[:, step]
            d_step = d_gates[:, step]
            torch.mul(
                by_cell[:, step].unflatten(2, (3, D)),
                d_c_step.unsqueeze(2),
                out=d_step[..., : 3 * D].unflatten(2, (3, D)),
            )
            torch.mul(o_by_m[:, step], d_m, out=d_step[..., 3 * D :])
            torch.mul(d_c_step, f[:, step], out=d_c[:, :size])
            d_h[:, :size] = torch.bmm(d_step.to(hh.dtype), hh)
        h_prev = torch.cat([h0, out[:, packing.previous]], dim=1)
        d_bias = d_gates.sum(dim=1)
        d_gates = d_gates.to(ih.dtype)
        d_weight_hr = None
        if hr is not None:
            m = (tanh_c * o).to(hr.dtype)
            d_weight_hr = torch.bmm(d_hs.to(hr.dtype).mT, m).to(x.dtype)
        return [
            torch.bmm(d_gates, ih).to(x.dtype),
            d_h,
            d_c,
            torch.bmm(d_gates.mT, x.to(ih.dtype)).to(x.dtype),
            torch.bmm(d_gates.mT, h_prev.to(hh.dtype)).to(x.dtype),
            d_bias,
            d_weight_hr,
        ]


class CuDNNLSTM:
    """One layer by PyTorch's own projected LSTM, which has no clips.

    cuDNN runs all steps in one call; on a CPU it is slower than `OperatorLSTM`.
    """

    def __init__(self, weights: LSTMWeights):
        ih, hh, bias, hr = weights[:4]
        others = (ih, hh, bias, torch.zeros_like(bias), hr)
        self.weights = [[w[d] for w in others if w is not None] for d in range(2)]

    def __call__(
        self, x: torch.Tensor, packing: Packing, h0: torch.Tensor, c0: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Read a packed batch; see `LSTMLayer.forward`."""
        batch_sizes = torch.tensor(packing.batch_sizes, dtype=torch.int64)
        # cuDNN computes gradients only of what it calls training.
        results, is_training = [], torch.is_grad_enabled()
        with warnings.catch_warnings(), without_tf32(x.device):
            # cuDNN copies the weights, which are a few MB.
            warnings.filterwarnings("ignore", "RNN module weights are not part of single")
            for d, weights in enumerate(self.weights):
                state = [h0[d : d + 1].contiguous(), c0[d : d + 1].contiguous()]
                given = x[d], batch_sizes, state, weights
                results.append(torch.lstm(*given, True, 1, 0.0, is_training, False))
        out, h_n, c_n = (torch.stack(both) for both in zip(*results, strict=True))
        return out, h_n[:, 0], c_n[:, 0]
