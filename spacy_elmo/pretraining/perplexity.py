"""Held-out perplexity of a biLM and its head, by the full softmax."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from ..bilm.model import BiLM
from .corpus import Batch, Block
from .softmax import SoftmaxHead
from .vocab import UNKNOWN

LOGITS_AT_ONCE = 2**25  # bounds memory: 128 MiB, whatever the vocabulary


@dataclass
class Perplexity:
    """What a text cost.

    Attributes:
        forward, backward: ``exp`` of the mean loss in nats of each direction. Each sentence's
            end (backward: its start) is predicted too and counts as a word.
        n_predicted: predictions of each direction: words, and one end of each sentence.
        n_words: words alone.
        n_unknown: how many of these were ``<UNK>``.
    """

    forward: float
    backward: float
    n_predicted: int
    n_words: int
    n_unknown: int

    @property
    def mean(self) -> float:
        """``exp`` of the mean loss of both directions."""
        return math.sqrt(self.forward * self.backward)

    @property
    def unknown_rate(self) -> float:
        """Share of the words that are ``<UNK>``."""
        return self.n_unknown / self.n_words


def predicted(
    model: BiLM, batch: Batch
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """What each direction has read before each prediction, and what it should predict.

    The forward direction predicts every token but the first of a sentence from the one before
    it, the backward direction every token but the last from the one after it.

    Returns:
        Forward hidden vectors ``(M, P)`` and targets ``(M,)``, and the backward ones; M is N
        less the number of sentences.
    """
    layers, _ = model(model.char_cnn(batch.char_ids), batch.tokens, batch.lengths)
    forward, backward = layers[-1].chunk(2, dim=1)  # (N, P) each
    ends = np.cumsum(batch.lengths)
    keep = np.ones(len(batch.tokens), dtype=bool)
    keep[ends - 1] = False
    before = torch.from_numpy(np.flatnonzero(keep)).to(model.device)  # all but each last token
    after = before + 1  # all but each first one
    return forward[before], batch.targets[after], backward[after], batch.targets[before]


def batch_loss(head: SoftmaxHead, hidden: torch.Tensor, targets: torch.Tensor) -> float:
    """Summed cross-entropy in nats of the full softmax, some rows at a time."""
    rows = max(1, LOGITS_AT_ONCE // len(head.weight))
    total = 0.0
    for start in range(0, len(hidden), rows):
        logits = head(hidden[start : start + rows])
        total += float(F.cross_entropy(logits, targets[start : start + rows], reduction="sum"))
    return total


@torch.no_grad()
def evaluate(
    model: BiLM, head: SoftmaxHead, block: Block, batch_words: int = 4096, max_words: int = 0
) -> Perplexity:
    """Perplexity of held-out sentences, each read from a zero state.

    Args:
        model: the biLM; it is put into evaluation mode and left in the mode it was in.
        head: its softmax.
        block: the sentences.
        batch_words: tokens read at once.
        max_words: read no more than about this many tokens, a fixed sample; 0 for all.

    Returns:
        The perplexities; infinite or NaN where the losses are.
    """
    was_training = model.training
    model.eval()
    if max_words:
        batch_words = min(batch_words, max_words)
    plan = block.plan(batch_words, np.random.default_rng(0) if max_words else None)
    if max_words:
        plan = plan[: max(1, max_words // batch_words)]
    forward = backward = 0.0
    n_predicted = n_words = n_unknown = 0
    for batch in _batches(block, plan, model.device):
        hidden_f, targets_f, hidden_b, targets_b = predicted(model, batch)
        forward += batch_loss(head, hidden_f, targets_f)
        backward += batch_loss(head, hidden_b, targets_b)
        n_predicted += len(targets_f)
        n_words += batch.n_words
        n_unknown += int((targets_f == UNKNOWN).sum())
    model.train(was_training)
    with np.errstate(over="ignore"):
        means = np.exp([forward / n_predicted, backward / n_predicted])
    return Perplexity(float(means[0]), float(means[1]), n_predicted, n_words, n_unknown)


def _batches(block: Block, plan: list[np.ndarray], device: torch.device) -> Iterable[Batch]:
    return (block.batch(sentences).to(device) for sentences in plan)
