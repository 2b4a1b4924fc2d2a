"""The gradient of a step: of several batches, and by several processes, as if it were one batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import torch
from torch import nn

from ..lm.batches import Batch
from ..lm.softmax import Candidates
from .loss import BiLMLoss
from .run.distributed import Processes


class Learner:
    """Leaves in the parameters the gradients of the mean loss over all predictions of a step.

    Args:
        loss: of a batch.
        group: the processes; each is to be given its share of the same batches.
        mixed_precision: compute in bfloat16 what bears it.
    """

    def __init__(self, loss: BiLMLoss, group: Processes, mixed_precision: bool = False):
        self.loss = loss
        self.group = group
        self.mixed_precision = mixed_precision
        self.joined: nn.Module | None = None

    def hold(self, held: bool) -> None:
        """Have the biLM learn nothing, or let it."""
        if any(p.requires_grad == held for p in self.loss.model.parameters()):
            self.loss.model.requires_grad_(not held)
            self.joined = None

    def backward(self, parts: Sequence[Batch], candidates: Candidates | None) -> torch.Tensor:
        """Compute the gradients; there are none before.

        Each batch counts by its share of the predictions, so that it does not matter how the
        sentences of a step are dealt out to batches and processes.

        Args:
            parts: the step's batches, or this process's shares of them.
            candidates: of the sampled softmax, for all of them, and the same in all processes.

        Returns:
            This process's share of the mean loss; the shares of all add up to it.
        """
        if self.joined is None:
            self.joined = self.group.joined(self.loss)
        device = self.group.device
        n_predicted = sum(part.totals[1] for part in parts)
        total = torch.zeros((), device=device)
        for number, part in enumerate(parts, start=1):
            more = number < len(parts)
            with self.group.apart(self.joined) if more else nullcontext():
                with torch.autocast(device.type, torch.bfloat16, enabled=self.mixed_precision):
                    mean = self.joined(part.to(device), candidates)
                loss = mean * (part.n_predicted / n_predicted)
                (loss * self.group.count).backward()  # of the processes' gradients there is a mean
            total += loss.detach()
        return total
