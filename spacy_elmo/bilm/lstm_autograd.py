"""How autograd calls the backends of an LSTM layer that have a backward pass of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from .lstm_weights import LSTMWeights
from .sentence_batches import Packing

Tensors = Sequence[torch.Tensor]


class AutogradLSTM(ABC):
    """One layer with a backward pass of its own.

    Args:
        weights: gradients of its tensors are computed.
    """

    def __init__(self, weights: LSTMWeights):
        self.weights = weights

    def __call__(
        self, x: torch.Tensor, packing: Packing, h0: torch.Tensor, c0: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Read a packed batch; see `LSTMLayer.forward`."""
        if torch.is_grad_enabled():
            return _Function.apply(self, packing, x, h0, c0, *self.weights[:4])
        out, h_n, c_n = self.forward(packing, (x, h0, c0), for_backward=False)
        return out, h_n, c_n

    @abstractmethod
    def forward(self, packing: Packing, given: Tensors, for_backward: bool) -> Tensors:
        """Read a packed batch.

        Args:
            packing: the batch's packing.
            given: x, h0 and c0.
            for_backward: after outputs, final h and final c, also return what `backward` needs.
        """

    @abstractmethod
    def backward(
        self, packing: Packing, given: Tensors, saved: Tensors, gradients: Tensors
    ) -> Sequence[torch.Tensor | None]:
        """Gradients of x, h0, c0 and the weights.

        Args:
            packing, given: as in `forward`.
            saved: the outputs, and what `forward` returned after the final states.
            gradients: those of the outputs, final h and final c.
        """


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, backend: AutogradLSTM, packing: Packing, *tensors: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        for_backward = any(ctx.needs_input_grad)
        out, h_n, c_n, *saved = backend.forward(packing, tensors[:3], for_backward)
        if for_backward:
            ctx.backend, ctx.packing, ctx.n_given = backend, packing, len(tensors)
            # The weights, too, so that PyTorch sees whether they have changed.
            ctx.save_for_backward(*tensors, out, *saved)
        return out, h_n, c_n

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        tensors, n = ctx.saved_tensors, ctx.n_given
        return None, None, *ctx.backend.backward(ctx.packing, tensors[:3], tensors[n:], gradients)
