"""The layers of a biLM for inference on a CPU: weights in bfloat16, or packed, converted once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch

from .char_cnn import CharCNN
from .lstm_layer import LSTMLayer
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
    kernel = layer.kernel(bfloat16) if layer.compiled else None
    if kernel is not None:
        return PackedLSTM(layer, kernel, bfloat16)
    if bfloat16:
        layer = deepcopy(layer)
        for weight in layer.parameters():
            if weight is not layer.bias:  # added to products, in float32
                weight.data = weight.bfloat16()
    return layer


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
        weights, sizes = (self.packed, self.bias), packing.batch_sizes
        out, h_n, c_n = self.kernel.forward(x, h0, c0, *weights, sizes, *self.clips, False)
        return out, h_n, c_n
