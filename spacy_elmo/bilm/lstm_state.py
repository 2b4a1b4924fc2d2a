"""The states of all LSTM layers that sentences start from and end in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from .config import BiLMConfig
from .packing import Packing

State = tuple[torch.Tensor, torch.Tensor]  # h (L, 2, B, P), c (L, 2, B, D)


def zero_state(config: BiLMConfig, n_sentences: int, like: torch.Tensor) -> State:
    """States of zeros for all layers: h ``(L, 2, B, P)`` and c ``(L, 2, B, D)``."""
    shape = (config.n_layers, 2, n_sentences)
    return like.new_zeros(*shape, config.projection_dim), like.new_zeros(*shape, config.dim)


def select_state(state: State, sentences: np.ndarray) -> State:
    """The states of some sentences; what is the same for all stays one."""
    h, c = (s if s.shape[2] == 1 and len(sentences) else s[:, :, sentences] for s in state)
    return h, c


def final_state(ends: Sequence[State], packing: Packing) -> State:
    """The states at the ends of all layers, ``(L, 2, B, P)`` and ``(L, 2, B, D)``."""
    back = torch.argsort(packing.order)
    h, c = (torch.stack([s[:, back] for s in parts]) for parts in zip(*ends, strict=True))
    return h, c
