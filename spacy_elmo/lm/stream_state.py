"""LSTM states that are carried from sentence to sentence, in several streams."""

from __future__ import annotations

import torch
from torch import nn

from ..bilm.config import BiLMConfig
from ..bilm.model import State


class StreamState(nn.Module):
    """One state for each of several streams; a module, so that checkpoints contain it.

    Args:
        config: shape of the biLM.
        n_streams: number of streams; their states are zeros at first.
    """

    h: torch.Tensor
    c: torch.Tensor

    def __init__(self, config: BiLMConfig, n_streams: int):
        super().__init__()
        shape = (config.n_layers, 2, n_streams)
        self.register_buffer("h", torch.zeros(*shape, config.projection_dim))
        self.register_buffer("c", torch.zeros(*shape, config.dim))

    def first(self, n: int) -> State:
        """The states of the first n streams, ``(L, 2, n, P)`` and ``(L, 2, n, D)``."""
        return self.h[:, :, :n].clone(), self.c[:, :, :n].clone()

    def update(self, state: State) -> None:
        """Replace the states of the first streams; no gradient passes."""
        h, c = state
        self.h[:, :, : h.shape[2]], self.c[:, :, : c.shape[2]] = h.detach(), c.detach()
