"""One layer of the two LSTM stacks: clipped, projected, both directions side by side.

Per direction (Peters et al. 2018, §3.4; Sak et al. 2014 for the projection)::

    [i, f, g, o] = W_ih · x_t + W_hh · h_{t−1} + b
    c_t = clip(σ(f + 1) · c_{t−1} + σ(i) · tanh(g), ± cell_clip)
    h_t = clip(W_hr · (σ(o) · tanh(c_t)), ± proj_clip)

The directions share nothing but the batch.

Where a CPU needs no gradient, `BiLM.parts` takes the kernel's layers (``kernel/lstm.py``). For all
else `pick_backend` takes the first of these that applies:

1. ``kernel/training.py``: the kernel, with gradients, in float32 on a CPU.
2. ``lstm_pytorch.py``: on a GPU cuDNN's LSTM, which neither clips nor rounds; or else PyTorch's
   operators, on any device.

A backend is made from `LSTMWeights`, and called with the arguments of `LSTMLayer.forward`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from .config import BiLMConfig
from .kernel.library import load_kernel
from .kernel.training import KernelTrainingLSTM
from .lstm_pytorch import CuDNNLSTM, OperatorLSTM
from .lstm_weights import LSTMWeights
from .sentence_batches import Packing
from .torch_precision import rounding

FORGET_BIAS = 1.0  # added to f's bias, which the weights do not contain
LSTMBackend = Callable[
    [torch.Tensor, Packing, torch.Tensor, torch.Tensor],
    tuple[torch.Tensor, torch.Tensor, torch.Tensor],
]


class LSTMLayer(nn.Module):
    """LSTMs of both directions for one layer; the first axis is the direction (0: forward).

    Args:
        config: shape of the biLM.
    """

    def __init__(self, config: BiLMConfig):
        super().__init__()
        P, D = config.projection_dim, config.dim
        self.config = config
        self.weight_ih = nn.Parameter(torch.empty(2, 4 * D, P))  # rows: i, f, g, o
        self.weight_hh = nn.Parameter(torch.empty(2, 4 * D, P))
        self.bias = nn.Parameter(torch.zeros(2, 4 * D))
        self.weight_hr = nn.Parameter(torch.empty(2, P, D)) if config.projects_cells else None
        for direction in range(2):
            for weight in (self.weight_ih, self.weight_hh, self.weight_hr):
                if weight is not None:
                    nn.init.xavier_uniform_(weight.data[direction])

    def forward(
        self, x: torch.Tensor, packing: Packing, h0: torch.Tensor, c0: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Read a packed batch.

        Args:
            x: ``(2, N, P)`` inputs in packed order.
            packing: the batch's packing.
            h0: ``(2, n_sentences, P)`` the first state, sentences in packed order.
            c0: ``(2, n_sentences, D)``.

        Returns:
            Outputs ``(2, N, P)``, and the last state of each sentence, as ``h0`` and ``c0``.
        """
        backend = pick_backend(self, rounding(x.device)[0] or x.dtype)
        with torch.autocast(x.device.type, enabled=False):  # it is for the products alone
            return backend(x, packing, h0, c0)

    def weights(self) -> LSTMWeights:
        """The weights, with `FORGET_BIAS` added to the bias."""
        bias, config = self.bias.clone(), self.config
        bias.unflatten(1, (4, -1))[:, 1] += FORGET_BIAS
        tensors = self.weight_ih, self.weight_hh, bias, self.weight_hr
        return LSTMWeights(*tensors, config.cell_clip, config.proj_clip)


def pick_backend(layer: LSTMLayer, dtype: torch.dtype) -> LSTMBackend:
    """The backend that computes a layer with its present weights; see above for the choice.

    Args:
        dtype: the type of the operands of matrix products. All else has the type of the inputs.
    """
    config, weights, weight = layer.config, layer.weights(), layer.weight_ih
    if weight.is_cuda:
        # Under autocast cuDNN would take half precision, in which small gradients vanish.
        has_clips = config.cell_clip is not None or config.proj_clip is not None
        is_there = torch.version.cuda and torch.backends.cudnn.enabled
        runs = is_there and dtype == weight.dtype and not has_clips
        return CuDNNLSTM(weights) if runs else OperatorLSTM(weights, dtype)
    if weight.device.type == "cpu" and weight.dtype == torch.float32 and (kernel := load_kernel()):
        return KernelTrainingLSTM(weights, kernel, dtype)
    return OperatorLSTM(weights, dtype)
