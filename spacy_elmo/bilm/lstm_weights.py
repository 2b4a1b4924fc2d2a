"""The weights of an LSTM layer, which its backends are made from."""

from __future__ import annotations

from typing import NamedTuple

import torch


class LSTMWeights(NamedTuple):
    """Weights of both directions of a layer, as they are now, and its clips.

    Attributes:
        ih: ``(2, 4D, P)`` of the inputs; rows i, f, g, o.
        hh: ``(2, 4D, P)`` of the outputs of the step before.
        bias: ``(2, 4D)``, with what is added to the forget gate.
        hr: ``(2, P, D)``, the projection, or None.
        cell_clip, proj_clip: see `BiLMConfig`.
    """

    ih: torch.Tensor
    hh: torch.Tensor
    bias: torch.Tensor
    hr: torch.Tensor | None
    cell_clip: float | None
    proj_clip: float | None
