"""The language model's head: a softmax over the vocabulary, shared by both directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..bilm.packing import to_device

NEVER = -1e30  # a logit without effect; infinite ones have no gradient where all are


class SoftmaxHead(nn.Module):
    """``p(w | h) ∝ exp(h · weight_w + bias_w)``, with full and sampled losses.

    Args:
        n_words: size V of the vocabulary, which is ordered by falling frequency.
        projection_dim: size P of one direction's output.
    """

    def __init__(self, n_words: int, projection_dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_words, projection_dim))
        # Starting from Zipf's law spares the first steps learning frequencies.
        self.bias = nn.Parameter(torch.from_numpy(log_uniform(n_words)).float())
        bound = (3 / projection_dim) ** 0.5  # a variance of 1 / P
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits ``(M, V)`` of hidden vectors ``(M, P)``."""
        return logits(hidden, self.weight, self.bias)

    def loss(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy in nats of the full softmax, ``(M, P)`` against ``(M,)``."""
        return F.cross_entropy(self(hidden), targets)

    def sampled_loss(
        self, hidden: torch.Tensor, targets: torch.Tensor, candidates: Candidates
    ) -> torch.Tensor:
        """Mean cross-entropy over each target and the shared candidates.

        Every logit is lowered by the log of how often its word is expected among the candidates
        (Jean et al. 2015, eq. 12), which makes the gradient tend to the full softmax's; a
        candidate that is the target itself does not count twice.

        Args:
            hidden: ``(M, P)``.
            targets: ``(M,)``.
            candidates: from `LogUniformSampler.sample`, on the same device.
        """
        words = candidates.words
        # One gather for candidates and targets: its gradient is as large as the whole table.
        weight = F.embedding(torch.cat([words, targets]), self.weight)
        candidate_weight, target_weight = weight.split([len(words), len(targets)])
        negatives = logits(
            hidden, candidate_weight, self.bias[words] - candidates.log_expected(words)
        )
        index = torch.full((len(self.weight),), -1, device=hidden.device)
        index[words] = torch.arange(len(words), device=hidden.device)
        hits = index[targets].unsqueeze(1)  # (M, 1) of a target among the candidates, or -1
        # 0 is added elsewhere, so that the CPU need not wait for the GPU to know the hits.
        added = torch.where(hits < 0, 0.0, NEVER).to(negatives.dtype)
        negatives.scatter_add_(1, hits.clamp(min=0), added)
        positives = (hidden * target_weight).sum(dim=1) + self.bias[targets]
        positives = positives - candidates.log_expected(targets)
        total = torch.logaddexp(torch.logsumexp(negatives, dim=1), positives)
        return (total - positives).mean()


def logits(hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """``(M, V)`` of hidden vectors ``(M, P)``; in mixed precision the product alone is rounded."""
    if torch.is_autocast_enabled(hidden.device.type):
        return F.linear(hidden, weight).to(bias.dtype).add_(bias)
    return F.linear(hidden, weight, bias)


@dataclass
class Candidates:
    """Distinct words drawn for one step.

    Attributes:
        words: ``(S,)`` the candidates.
        tries: draws it took to find them.
        log_miss: ``(V,)`` for every word ``log(1 − p)``, that a draw is another word.
    """

    words: torch.Tensor
    tries: int
    log_miss: torch.Tensor

    def log_expected(self, words: torch.Tensor) -> torch.Tensor:
        """How often words ``(M,)`` are expected among so many draws: ``log(1 − (1 − p)^tries)``."""
        return torch.log(-torch.expm1(self.tries * self.log_miss[words]))


def log_uniform(n_words: int) -> np.ndarray:
    """``log p(k)`` with ``p(k) = log((k + 2) / (k + 1)) / log(V + 1)``, near Zipf's law."""
    k = np.arange(n_words, dtype=np.float64)
    return np.log(np.log((k + 2) / (k + 1)) / np.log(n_words + 1))


class LogUniformSampler:
    """Draws words by `log_uniform` probabilities.

    Args:
        n_words: size V of the vocabulary.
        n_candidates: distinct words of a draw, fewer than V.
    """

    def __init__(self, n_words: int, n_candidates: int):
        if not 1 <= n_candidates < n_words:
            raise ValueError(
                f"softmax.n_candidates is {n_candidates}, but the vocabulary has {n_words} words; "
                f'choose fewer candidates, or softmax.kind = "full".'
            )
        self.n_words, self.n_candidates = n_words, n_candidates
        log_miss = np.log1p(-np.exp(log_uniform(n_words)))  # log(1 − p)
        self.log_miss = torch.from_numpy(log_miss).float()

    def to(self, device: torch.device) -> LogUniformSampler:
        """Move the table to a device; candidates are drawn there."""
        self.log_miss = self.log_miss.to(device)
        return self

    def sample(self, rng: np.random.Generator) -> Candidates:
        """Draw until `n_candidates` distinct words are there."""
        drawn: np.ndarray = np.empty(0, dtype=np.int64)
        while True:
            u = rng.random(2 * self.n_candidates)
            new = np.exp(u * np.log(self.n_words + 1)).astype(np.int64) - 1
            drawn = np.append(drawn, np.minimum(new, self.n_words - 1))
            words, first = np.unique(drawn, return_index=True)
            if len(words) >= self.n_candidates:
                break
        chosen = np.argsort(first)[: self.n_candidates]
        tries = int(first[chosen[-1]]) + 1  # draws it took to find the last of them
        ids = to_device(np.sort(words[chosen]), self.log_miss.device)
        return Candidates(ids, tries, self.log_miss)
