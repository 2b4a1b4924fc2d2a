"""One layer of the two LSTM stacks: clipped, projected, both directions side by side.

Per direction (Peters et al. 2018, §3.4; Sak et al. 2014 for the projection)::

    [i, f, g, o] = W_ih · x_t + W_hh · h_{t−1} + b
    c_t = clip(σ(f + 1) · c_{t−1} + σ(i) · tanh(g), ± cell_clip)
    h_t = clip(W_hr · (σ(o) · tanh(c_t)), ± proj_clip)

The directions never exchange anything; they share only the batch they are computed in.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn

from .config import BiLMConfig
from .kernel.lstm import BLOCK, KernelLSTM, load_kernel
from .lstm_steps import LSTMOptions, OperatorLSTM
from .sentence_packing import Packing
from .torch_precision import autocast_type, float32_precision, has_fast_bfloat16, without_tf32

FORGET_BIAS = 1.0  # added to f's bias, which the weights do not contain


class LSTMLayer(nn.Module):
    """LSTMs of both directions for one layer; the first axis is the direction (0: forward).

    Args:
        config: shape of the biLM.
        compiled: compute with the compiled kernel on a CPU, see `kernel.load_kernel`. Its products
            take bfloat16 operands under autocast, and where PyTorch's float32 matmul precision is
            "medium" if the CPU multiplies these faster.
    """

    def __init__(self, config: BiLMConfig, compiled: bool = False):
        super().__init__()
        P, D = config.projection_dim, config.dim
        self.cell_clip, self.proj_clip, self.compiled = config.cell_clip, config.proj_clip, compiled
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
            h0: ``(2, n_sentences, P)`` state to start from, sentences in packed order.
            c0: ``(2, n_sentences, D)``.

        Returns:
            Outputs ``(2, N, P)``, and the state each sentence ended in, as ``h0`` and ``c0``.
        """
        # Autocast, and weights converted to bfloat16, are for the products; all else is done in the
        # type of x.
        product_type = self.weight_ih.dtype
        if product_type == x.dtype:
            product_type = autocast_type(x.device) or x.dtype
        # Under autocast cuDNN would take half precision, in which small gradients vanish.
        is_plain = self.cell_clip is None and self.proj_clip is None and product_type == x.dtype
        if x.is_cuda and is_plain and torch.version.cuda and torch.backends.cudnn.enabled:
            with without_tf32(x.device):
                return self.forward_torch(x, packing, h0, c0)
        function: Any = OperatorLSTM
        if self.compiled:
            medium = float32_precision(x.device) == "medium"
            bfloat16 = product_type == torch.bfloat16
            if product_type == torch.float32 and medium:
                bfloat16 = has_fast_bfloat16()
            if self.kernel(bfloat16) is not None:
                function, product_type = KernelLSTM, torch.bfloat16 if bfloat16 else torch.float32
        grad = torch.is_grad_enabled()
        options = LSTMOptions(packing, self.cell_clip, self.proj_clip, grad, product_type)
        weights = (self.weight_ih, self.weight_hh, self.gate_bias(), self.weight_hr)
        with torch.autocast(x.device.type, enabled=False):
            return function.apply(x, h0, c0, *weights, options)

    def gate_bias(self) -> torch.Tensor:
        """The bias of the gates ``(2, 4D)``, with `FORGET_BIAS`."""
        bias = self.bias.clone()
        D = bias.shape[1] // 4
        bias[:, D : 2 * D] += FORGET_BIAS
        return bias

    def kernel(self, bfloat16: bool) -> Any:
        """The compiled kernel, or None where it is not wanted or cannot compute this layer."""
        weight = self.weight_ih
        P, D = weight.shape[2], weight.shape[1] // 4
        fits = D % BLOCK == 0 and P % 2 == 0  # bfloat16 operands are packed in pairs
        fits = fits and weight.device.type == "cpu" and weight.dtype == torch.float32
        return load_kernel(bfloat16) if self.compiled and fits else None

    def forward_torch(
        self, x: torch.Tensor, packing: Packing, h0: torch.Tensor, c0: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The same function by PyTorch's own projected LSTM, which has no clips.

        cuDNN runs all steps in one call; on a CPU it is the slower of the two.
        """
        batch_sizes = torch.tensor(packing.batch_sizes, dtype=torch.int64)
        bias = self.gate_bias()
        no_bias = torch.zeros_like(bias[0])
        results = []
        for d in range(2):
            weights = [self.weight_ih[d], self.weight_hh[d], bias[d], no_bias]
            if self.weight_hr is not None:
                weights.append(self.weight_hr[d])
            state = [h0[d : d + 1].contiguous(), c0[d : d + 1].contiguous()]
            with warnings.catch_warnings():  # that cuDNN copies the weights, which are a few MB
                warnings.filterwarnings("ignore", "RNN module weights are not part of single")
                found = torch.lstm(
                    x[d], batch_sizes, state, weights, True, 1, 0.0, self.training, False
                )
            results.append(found)
        out, h_n, c_n = (torch.stack(both) for both in zip(*results, strict=True))
        return out, h_n[:, 0], c_n[:, 0]
