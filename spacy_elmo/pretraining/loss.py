"""The loss of a batch: both directions of the language model, and the teacher's vectors."""

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
from .config import TrainingSettings
from .teacher import Targets


class BiLMLoss(nn.Module):
    """The mean loss of both directions, in nats (Peters et al. 2018, §3.1).

    Args:
        model: the biLM.
        head: the softmax of the language model.
        settings: the dropout rate on the input of the head, and the weight of the distance to the
            teacher, ``1 - cos`` for each word.
        student: maps a token's layers, concatenated, to the teacher's vector; None for no teacher.
    """

    def __init__(
        self, model: BiLM, head: SoftmaxHead, settings: TrainingSettings, student: nn.Linear | None
    ):
        super().__init__()
        self.model, self.head, self.student, self.settings = model, head, student, settings

    def forward(
        self, batch: SentenceBatch, candidates: Candidates | None, teacher: Targets | None = None
    ) -> torch.Tensor:
        """The mean loss over the predictions of a batch.

        Args:
            batch: at least one sentence, on the biLM's device.
            candidates: words for the sampled softmax, on that device; None for the full softmax.
            teacher: the teacher's vectors, see `Teacher.targets`.
        """
        states = hidden_states(self.model, batch)
        hidden = states.hidden
        if self.settings.dropout:
            hidden = drop_out(hidden, self.settings.dropout, self.model.generator)
        if candidates is None:
            loss = self.head.loss(hidden, states.targets)
        else:
            loss = self.head.sampled_loss(hidden, states.targets, candidates)
        if self.student is None or teacher is None:
            return loss
        vectors, tokens = (tensor.to(hidden.device, non_blocking=True) for tensor in teacher)
        x = self.student(states.layers[:, tokens].transpose(0, 1).flatten(1))
        distance = (1 - F.cosine_similarity(x, vectors)).sum() / batch.n_predicted
        return loss + self.settings.teacher_weight * distance

    def replica(self) -> BiLMLoss:
        """A copy for another thread, with the same parameters in memory, but gradients and random
        numbers of its own."""
        memo: dict[int, Any] = {
            id(p): nn.Parameter(p.detach(), p.requires_grad) for p in self.parameters()
        }
        memo |= {id(shared): shared for shared in (*self.buffers(), self.model.char_cnn.to_ids)}
        copy = deepcopy(self, memo)
        copy.model.generator = torch.Generator()
        return copy
