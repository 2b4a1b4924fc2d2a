"""All steps of an LSTM layer by PyTorch's operators, forward and backward."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

import torch
from torch.autograd.function import once_differentiable

from .sentence_packing import Packing

BYTES_AT_ONCE = 2**23  # of gates, where no gradient needs those of all steps


class LSTMOptions(NamedTuple):
    """Options for the steps of a layer.

    Attributes:
        packing: of the batch.
        cell_clip, proj_clip: see `BiLMConfig`.
        is_grad_enabled: where the layer is called; inside an autograd function it never is.
        product_type: of the operands of matrix products.
    """

    packing: Packing
    cell_clip: float | None
    proj_clip: float | None
    is_grad_enabled: bool
    product_type: torch.dtype


def _add_times(
    to: torch.Tensor, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor
) -> torch.Tensor:
    """``to + a · b`` in ``out``, multiplied in the type of b."""
    if a.dtype == b.dtype:
        return torch.baddbmm(to, a, b, out=out)
    return torch.add(to, torch.bmm(a.to(b.dtype), b), out=out)


def tanh(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """tanh of each number in ``out``, which may be ``x``.

    On a CPU by ``2σ(2x) − 1``, which differs by 2e-7 at most: PyTorch's tanh takes six times as
    long as its sigmoid there.
    """
    if x.device.type != "cpu" or x.dtype.itemsize < 4:
        return torch.tanh(x, out=out)
    return torch.mul(x, 2, out=out).sigmoid_().mul_(2).sub_(1)


class OperatorLSTM(torch.autograd.Function):
    """All steps of one layer, with one product per weight gradient instead of one per step.

    What does not depend on the recurrence is done for all steps at once, before the loop over
    them (input products) or after it (weight gradients); what remains inside is two small
    products and a few pointwise operations. The products may be in lower precision.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,  # (2, N, P)
        h0: torch.Tensor,  # (2, B, P)
        c0: torch.Tensor,  # (2, B, D)
        weight_ih: torch.Tensor,  # (2, 4D, P)
        weight_hh: torch.Tensor,  # (2, 4D, P)
        bias: torch.Tensor,  # (2, 4D)
        weight_hr: torch.Tensor | None,  # (2, P, D)
        options: LSTMOptions,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        packing, cell_clip, proj_clip, is_grad_enabled, product_type = options
        N, D = x.shape[1], c0.shape[2]
        for_backward = is_grad_enabled and any(ctx.needs_input_grad)
        ih = weight_ih.to(product_type).transpose(1, 2)
        hh = weight_hh.to(product_type).transpose(1, 2)
        hr = None if weight_hr is None else weight_hr.to(product_type).transpose(1, 2)
        out = torch.empty_like(x) if hr is not None else x.new_empty(2, N, D)
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
                _add_times(bias.unsqueeze(1), x[:, first:end], ih, out=from_x)
            if size < h.shape[1]:
                h_n[:, size : h.shape[1]] = h[:, size:]
                h, c = h[:, :size], c[:, :size]
            step = slice(start, start + size)
            gates = from_x[:, start - first : start - first + size]  # (2, size, 4D)
            _add_times(gates, h, hh, out=gates)
            i, f, g, o = gates.split(D, dim=2)
            gates[..., : 2 * D].sigmoid_()
            tanh(g, out=g)
            o.sigmoid_()
            c = c.mul_(f).addcmul_(i, g)
            if cell_clip is not None:
                c.clamp_(-cell_clip, cell_clip)
            tanh_c = tanh(c, out=tanhs[:, step] if for_backward else tanhs[:, :size])
            h = tanh_c * o if for_backward else tanh_c.mul_(o)
            if hr is not None:
                h = torch.bmm(h.to(hr.dtype), hr).to(x.dtype)
                if proj_clip is not None:
                    h.clamp_(-proj_clip, proj_clip)
            out[:, step] = h
            if cells is not None:
                cells[:, step] = c
        h_n[:, : h.shape[1]] = h
        if cells is not None:
            ctx.save_for_backward(
                x, h0, c0, weight_ih, weight_hh, weight_hr, all_gates, cells, tanhs, out
            )
            ctx.options = options
        return out, h_n, c_n

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, d_out: torch.Tensor, d_h_n: torch.Tensor, d_c_n: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        x, h0, c0, weight_ih, weight_hh, weight_hr, gates, cells, tanh_c, out = ctx.saved_tensors
        packing, cell_clip, proj_clip, _, product_type = ctx.options
        hh = weight_hh.to(product_type)
        hr = None if weight_hr is None else weight_hr.to(product_type)
        D = c0.shape[2]
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
        inside = None if cell_clip is None else cells.abs() < cell_clip
        if proj_clip is not None:
            h_inside = out.abs() < proj_clip
        d_gates = torch.empty_like(gates)
        d_hs = torch.empty_like(out)  # by h before its clip
        d_h, d_c = d_h_n.clone(), d_c_n.clone()  # packed rows, from step to step
        for start, size in reversed(packing.steps):
            step = slice(start, start + size)
            d_h_step = d_out[:, step] + d_h[:, :size]
            if proj_clip is not None:
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
        d_gates = d_gates.to(product_type)
        d_gates_t = d_gates.transpose(1, 2)
        d_weight_hr = None
        if hr is not None:
            m = (tanh_c * o).to(product_type)
            d_weight_hr = torch.bmm(d_hs.to(product_type).transpose(1, 2), m).to(x.dtype)
        return (
            torch.bmm(d_gates, weight_ih.to(product_type)).to(x.dtype),
            d_h,
            d_c,
            torch.bmm(d_gates_t, x.to(product_type)).to(x.dtype),
            torch.bmm(d_gates_t, h_prev.to(product_type)).to(x.dtype),
            d_bias,
            d_weight_hr,
            None,
        )
