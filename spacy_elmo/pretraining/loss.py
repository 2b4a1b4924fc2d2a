"""The loss of a training step, as one module of the biLM and its head."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from ..bilm.model import BiLM
from ..lm.batches import Batch
from ..lm.perplexity import predicted
from ..lm.softmax import Candidates, SoftmaxHead
from ..lm.stream_state import StreamState


class BiLMLoss(nn.Module):
    """Mean loss in nats of both directions over a batch (Peters et al. 2018, §3.1).

    A module, so that several processes can train it together (see `Processes.joined`).

    Args:
        model: the biLM.
        head: its softmax.
        dropout: on what the head reads.
        carried: the states in which sentences start, left in those in which they end; None for
            the biLM's own initial state.
    """

    def __init__(
        self, model: BiLM, head: SoftmaxHead, dropout: float, carried: StreamState | None = None
    ):
        super().__init__()
        self.model = model
        self.head = head
        self.dropout = dropout
        self.carried = carried

    def forward(self, batch: Batch, candidates: Candidates | None) -> torch.Tensor:
        """The mean over the predictions of a batch; 0 if it holds no sentence.

        Args:
            batch: on the biLM's device.
            candidates: of the sampled softmax, on the same device; None for the full one.
        """
        if not batch.lengths:  # every parameter has a gradient all the same: others wait for it
            zeros = [0 * p.sum() for p in self.parameters() if p.requires_grad]
            return torch.stack(zeros).sum()
        state = None if self.carried is None else self.carried.of(len(batch.lengths))
        read = predicted(self.model, batch, state)
        if self.carried is not None:
            self.carried.keep(read.state)
        hidden = F.dropout(torch.cat([read.hidden_f, read.hidden_b]), self.dropout)
        targets = torch.cat([read.targets_f, read.targets_b])
        if candidates is None:
            return self.head.loss(hidden, targets)
        return self.head.sampled_loss(hidden, targets, candidates)
