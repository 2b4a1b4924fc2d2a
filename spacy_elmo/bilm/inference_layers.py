"""The layers of a biLM for inference on a CPU: weights converted and packed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any

import torch

from .char_cnn import CharCNN
from .lstm_layer import LSTMLayer
from .product_rows import round_up
from .sentence_packing import Packing
from .static_vectors import WordVectors

Encode = Callable[[torch.Tensor], torch.Tensor]
Layer = Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]]


def inference_layers(
    encoder: CharCNN | WordVectors, lstm: Sequence[LSTMLayer], bfloat16: bool, is_large: bool
) -> tuple[Encode, list[Layer]]:
    """The parts of a biLM with their weights packed, and in bfloat16 if wanted.

    Args:
        encoder: the token encoder. Static word vectors stay in float32: there is little to
            compute, and the table would take half as much memory again.
        lstm: the LSTM layers, from the bottom.
        bfloat16: make matrix products take bfloat16 operands.
        is_large: whether the layers are, see `BiLMConfig.has_large_layers`.

    Returns:
        A function from ids of words to vectors x ``(n_words, P)``, float32, and the layers, called
        as `LSTMLayer` is.
    """
    is_converted = bfloat16 and isinstance(encoder, CharCNN)
    converted = deepcopy(encoder).bfloat16() if is_converted else encoder

    def encode(ids: torch.Tensor) -> torch.Tensor:
        with torch.autocast(ids.device.type, enabled=False):  # the weights have their type already
            return converted(ids).float()

    return encode, [_pack(layer, bfloat16, is_large) for layer in lstm]


def _pack(layer: LSTMLayer, bfloat16: bool, is_large: bool) -> Layer:
    kernel = layer.kernel(bfloat16) if layer.compiled else None
    if kernel is not None:
        return KernelInference(layer, kernel, bfloat16)
    if torch.backends.mkldnn.is_available():
        if bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported():
            return OneDNNInference(layer, torch.bfloat16)
        if not (bfloat16 or is_large):  # packed, they would take as much memory again
            return OneDNNInference(layer, torch.float32)
    if bfloat16:
        layer = deepcopy(layer)
        for weight in layer.parameters():
            if weight is not layer.bias:  # added to products, in float32
                weight.data = weight.bfloat16()
    return layer


class KernelInference:
    """One LSTM layer by the compiled kernel, which packs its weights for each call otherwise."""

    def __init__(self, layer: LSTMLayer, kernel: Any, bfloat16: bool):
        self.kernel = kernel
        self.clips = layer.cell_clip or 0.0, layer.proj_clip or 0.0  # 0: none
        self.bias = layer.gate_bias().detach()
        weights = layer.weight_ih, layer.weight_hh, layer.weight_hr
        self.packed = kernel.pack(*weights, bfloat16, True)

    def __call__(
        self, x: torch.Tensor, packing: Packing, h0: torch.Tensor, c0: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Read a packed batch; see `LSTMLayer.forward`."""
        weights, sizes = (self.packed, self.bias), packing.batch_sizes
        out, h_n, c_n = self.kernel.forward(x, h0, c0, *weights, sizes, *self.clips, False)
        return out, h_n, c_n


class OneDNNInference:
    """One LSTM layer by PyTorch's operators, with weights that oneDNN has packed for its products.

    `torch.bmm` packs them anew at each step, and takes twice as long in float32 on an AMD.
    A step multiplies ``[x_t; h_{t-1}]`` once. As ``tanh(z) = 2σ(2z) − 1``, the weights of g are
    doubled, so that one pass makes σ of all gates, and the projection is negated: it reads
    ``−σ(o) · tanh(c) = σ(o) − 2σ(o)σ(2c)``.

    Args:
        layer: whose weights are packed.
        dtype: of the operands of the products, which round to it; all else is float32.
    """

    def __init__(self, layer: LSTMLayer, dtype: torch.dtype):
        self.cell_clip, self.proj_clip, self.dtype = layer.cell_clip, layer.proj_clip, dtype
        weight = torch.cat([layer.weight_ih, layer.weight_hh], dim=2).detach()  # (2, 4D, 2P)
        self.bias = layer.gate_bias().detach()
        D = weight.shape[1] // 4
        # oneDNN adds up a row of many numbers in another order if it is alone.
        self.fewest_rows = 1 if max(weight.shape[2], D) <= 1024 else 2
        for each in (weight, self.bias):
            each[:, 2 * D : 3 * D] *= 2
        self.weight, self.weight_hr = self._packed(weight), None
        if layer.weight_hr is not None:
            self.weight_hr = self._packed(-layer.weight_hr.detach())

    def _packed(self, weight: torch.Tensor) -> list[torch.Tensor]:
        """The weights of each direction, ``(2, n_out, n_in)``."""
        return [torch.ops.mkldnn._reorder_linear_weight(w) for w in weight.to(self.dtype)]

    def __call__(
        self, x: torch.Tensor, packing: Packing, h0: torch.Tensor, c0: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Read a packed batch; see `LSTMLayer.forward`."""
        out, h_n, c_n = torch.empty_like(x), torch.empty_like(h0), c0.clone()
        for d in range(2):
            self._read(d, x[d], packing.steps, h0[d], c_n[d], out[d], h_n[d])
        return out, h_n, c_n

    def _read(
        self,
        d: int,
        x: torch.Tensor,
        steps: list[tuple[int, int]],
        h0: torch.Tensor,
        c_n: torch.Tensor,
        out: torch.Tensor,
        h_n: torch.Tensor,
    ) -> None:
        """One direction, into ``out``, ``c_n`` (which has the cells at the start) and ``h_n``."""
        (N, P), (B, D) = x.shape, c_n.shape
        times = torch.ops.mkldnn._linear_pointwise
        plain: Any = (None, "none", [], "")
        # Products take the rows of later tokens, too, see `round_up`; what they make is not used.
        inputs = x.new_zeros(N + B, 2 * P, dtype=self.dtype)  # [x_t; h_{t-1}] of each token
        inputs[:N, :P] = x
        inputs[:B, P:] = h0
        all_gates, sigmoids = x.new_empty(B, 4 * D), x.new_empty(B, D)
        outputs = x.new_zeros(round_up(B, self.fewest_rows), D, dtype=self.dtype)
        for (start, size), (after, remaining) in pairwise([*steps, (N, 0)]):
            gates, n_rows = all_gates[:size], round_up(size, self.fewest_rows)  # (size, 4D)
            product = times(inputs[start : start + n_rows], self.weight[d], *plain)
            torch.add(product[:size], self.bias[d], out=gates)
            i, f, g, o = gates.sigmoid_().split(D, dim=1)
            c = c_n[:size].mul_(f).addcmul_(i, g, value=2).sub_(i)
            if self.cell_clip is not None:
                c.clamp_(-self.cell_clip, self.cell_clip)
            s = torch.mul(c, 2, out=sigmoids[:size]).sigmoid_()
            m = torch.addcmul(o, o, s, value=-2)  # -σ(o) · tanh(c)
            h = out[start : start + size]
            if self.weight_hr is None:
                torch.neg(m, out=h)
            else:
                outputs[:size] = m
                h.copy_(times(outputs[:n_rows], self.weight_hr[d], *plain)[:size])
                if self.proj_clip is not None:
                    h.clamp_(-self.proj_clip, self.proj_clip)
            inputs[after : after + remaining, P:] = h[:remaining]
            h_n[remaining:size] = h[remaining:]  # sentences that have ended
