"""The layers of a biLM for inference on a CPU: weights in bfloat16, or packed, converted once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any

import torch

from .char_cnn import CharCNN
from .lstm_layer import LSTMLayer
from .lstm_steps import activate, tanh
from .packing import Packing
from .static_vectors import WordVectors

Encode = Callable[[torch.Tensor], torch.Tensor]
Layer = Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]]


def inference_layers(
    encoder: CharCNN | WordVectors, lstm: Sequence[LSTMLayer], bfloat16: bool
) -> tuple[Encode, list[Layer]]:
    """The parts of a biLM with their weights in bfloat16, or packed for the compiled kernel.

    Args:
        encoder: the token encoder. Static word vectors stay in float32: there is little to
            compute, and the table would take half as much memory again.
        lstm: the LSTM layers, from the bottom. They are packed if they are compiled.
        bfloat16: make matrix products take bfloat16 operands.

    Returns:
        A function from ids of words to vectors x ``(n_words, P)``, float32, and the layers, called
        as `LSTMLayer` is.
    """
    is_converted = bfloat16 and isinstance(encoder, CharCNN)
    converted = deepcopy(encoder).bfloat16() if is_converted else encoder

    def encode(ids: torch.Tensor) -> torch.Tensor:
        with torch.autocast(ids.device.type, enabled=False):  # the weights have their type already
            return converted(ids).float()

    return encode, [_convert(layer, bfloat16) for layer in lstm]


def _convert(layer: LSTMLayer, bfloat16: bool) -> Layer:
    kernel = layer.kernel(bfloat16)
    if kernel is not None:
        return PackedLSTM(layer, kernel, bfloat16)
    return Bfloat16LSTM(layer) if bfloat16 else layer


class PackedLSTM:
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
        sizes = packing.batch_sizes
        out, h_n, c_n = self.kernel.forward(
            x, h0, c0, self.packed, self.bias, sizes, *self.clips, False
        )
        return out, h_n, c_n


class Bfloat16LSTM:
    """One LSTM layer whose matrix products take bfloat16 operands and are rounded to it.

    Gates, cells and outputs are float32. A step multiplies ``[x_t; h_{t-1}]`` once: to add two
    products would take a second pass over the gates, which costs more than the product itself.
    """

    def __init__(self, layer: LSTMLayer):
        self.cell_clip, self.proj_clip = layer.cell_clip, layer.proj_clip
        both = [w.detach().transpose(1, 2) for w in (layer.weight_ih, layer.weight_hh)]
        _, P, gates = both[0].shape
        self.weight = both[0].new_empty(2, 2 * P, gates, dtype=torch.bfloat16)  # gates = 4D
        self.weight[:, :P], self.weight[:, P:] = both  # without a copy in between
        self.bias = layer.gate_bias().detach().unsqueeze(1)  # (2, 1, 4D)
        self.weight_hr = None  # (2, D, P)
        if layer.weight_hr is not None:
            self.weight_hr = layer.weight_hr.detach().bfloat16().transpose(1, 2).contiguous()

    def __call__(
        self, x: torch.Tensor, packing: Packing, h0: torch.Tensor, c0: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Read a packed batch; see `LSTMLayer.forward`."""
        (_, N, P), (_, B, D) = x.shape, c0.shape
        inputs = self.weight.new_empty(2, N, 2 * P)  # [x_t; h_{t-1}] of each token
        inputs[..., :P] = x
        inputs[:, :B, P:] = h0
        out, h_n, c_n = torch.empty_like(x), torch.empty_like(h0), c0.clone()
        # What a step needs, for all sentences; later steps have fewer.
        products, projected = self.weight.new_empty(2, B, 4 * D), self.weight.new_empty(2, B, P)
        all_gates, all_tanhs = x.new_empty(2, B, 4 * D), x.new_empty(2, B, D)
        cell_outputs = self.weight.new_empty(2, B, D)
        for (start, size), (after, remaining) in pairwise([*packing.steps(), (N, 0)]):
            step = slice(start, start + size)
            product = torch.bmm(inputs[:, step], self.weight, out=products[:, :size])
            gates = all_gates[:, :size].copy_(product).add_(self.bias)  # (2, size, 4D)
            i, f, g, o = activate(gates)
            c = c_n[:, :size].mul_(f).addcmul_(i, g)
            if self.cell_clip is not None:
                c.clamp_(-self.cell_clip, self.cell_clip)
            tanh_c = tanh(c, out=all_tanhs[:, :size])
            h = out[:, step]
            if self.weight_hr is None:
                torch.mul(tanh_c, o, out=h)
            else:
                m = torch.mul(tanh_c, o, out=cell_outputs[:, :size])
                h.copy_(torch.bmm(m, self.weight_hr, out=projected[:, :size]))
                if self.proj_clip is not None:
                    h.clamp_(-self.proj_clip, self.proj_clip)
            inputs[:, after : after + remaining, P:] = h[:, :remaining]
            h_n[:, remaining:size] = h[:, remaining:]  # sentences that have ended
        return out, h_n, c_n
