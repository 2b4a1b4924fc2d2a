"""Muon: momentum whose matrices are made orthogonal before each update (Jordan et al. 2024).

PyTorch's own takes single matrices, and multiplies in bfloat16, which takes 18 times as long on a
CPU without instructions for it. This one takes both directions and all gates at once, in float32.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

MOMENTUM = 0.95
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the iteration, Jordan's
N_ITERATIONS = 5
RMS = 0.2  # of an update at a learning rate of 1, about that of Adam (Liu et al. 2025)


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, orthogonalised; no weight decay.

    Args:
        parameters: the weights of LSTM layers, ``(2, 4D, P)`` or ``(2, P, D)``: each direction's
            matrix, and that of each gate, counts by itself.
        lr: learning rate, in the units of Adam's.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], lr: float):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        for group in self.param_groups:
            for parameter in filter(lambda p: p.grad is not None, group["params"]):
                state, grad = self.state[parameter], parameter.grad
                if not state:
                    state["momentum"] = torch.zeros_like(parameter)
                state["momentum"].lerp_(grad, 1 - MOMENTUM)
                update = grad.lerp(state["momentum"], MOMENTUM)
                n, rows, columns = update.shape
                if rows > columns:  # (2, 4D, P): the gates
                    update = update.view(4 * n, rows // 4, columns)
                scale = RMS * max(update.shape[1:]) ** 0.5
                update = orthogonalise(update).view_as(parameter)
                parameter.add_(update, alpha=-scale * group["lr"])


def orthogonalise(matrices: torch.Tensor) -> torch.Tensor:
    """Matrices ``(n, rows, columns)`` with their singular values near 1, by Newton and Schulz."""
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    is_tall = x.shape[1] > x.shape[2]
    x = x.mT if is_tall else x
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(N_ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    x = x.mT if is_tall else x
    return x.to(matrices.dtype).contiguous()
