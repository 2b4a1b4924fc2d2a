"""The loss of a batch: of both directions of the language model, and of a teacher's vectors."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from ..bilm.model import BiLM, drop_out
from ..lm.encoded_sentences import SentenceBatch
from ..lm.forward import hidden_states
from ..lm.softmax import Candidates, SoftmaxHead


class BiLMLoss(nn.Module):
    """Mean loss in nats of both directions over a batch (Peters et al. 2018, §3.1).

    Args:
        model: the biLM.
        head: its softmax.
        dropout: on the input of the head.
        student: maps the layers of a token, concatenated, to its vector of the teacher, or None.
        teacher_weight: of its loss, the distance ``1 - cos`` per predicted word.
    """

    def __init__(
        self,
        model: BiLM,
        head: SoftmaxHead,
        dropout: float,
        student: nn.Linear | None = None,
        teacher_weight: float = 1.0,
    ):
        super().__init__()
        self.model = model
        self.head = head
        self.dropout = dropout
        self.generator: torch.Generator | None = None
        self.student, self.teacher_weight = student, teacher_weight

    def forward(self, batch: SentenceBatch, candidates: Candidates | None) -> torch.Tensor:
        """The mean over the predictions of a batch; 0 if it has no sentence.

        Args:
            batch: on the biLM's device.
            candidates: of the sampled softmax, on the same device; None for the full one.
        """
        if not batch.lengths:  # every parameter still needs a gradient: other ranks wait for it
            zeros = [0 * p.sum() for p in self.parameters() if p.requires_grad]
            return torch.stack(zeros).sum()
        read = hidden_states(self.model, batch)
        hidden = torch.cat([read.hidden_f, read.hidden_b])
        if self.dropout:
            hidden = drop_out(hidden, self.dropout, self.generator)
        targets = torch.cat([read.targets_f, read.targets_b])
        if candidates is None:
            loss = self.head.loss(hidden, targets)
        else:
            loss = self.head.sampled_loss(hidden, targets, candidates)
        if self.student is None:
            return loss
        if batch.teacher_targets is None:
            return loss + 0 * sum(p.sum() for p in self.student.parameters())
        vectors, tokens = batch.teacher_targets
        x = self.student(read.layers[:, tokens].transpose(0, 1).flatten(1))
        distance = (1 - F.cosine_similarity(x, vectors)).sum() / batch.n_predicted
        return loss + self.teacher_weight * distance

    def replica(self) -> BiLMLoss:
        """A copy for another thread: the same parameters in memory, with gradients and random
        numbers of its own."""
        memo: dict[int, Any] = {
            id(p): nn.Parameter(p.detach(), p.requires_grad) for p in self.parameters()
        }
        memo |= {id(shared): shared for shared in (*self.buffers(), self.model.char_cnn.to_ids)}
        copy = deepcopy(self, memo)
        copy.generator = copy.model.generator = torch.Generator()
        return copy
