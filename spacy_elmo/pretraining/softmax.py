"""The language model's head: a softmax over the vocabulary, shared by both directions."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class SoftmaxHead(nn.Module):
    """``p(w | h) ∝ exp(h · weight_w + bias_w)``, with full and sampled losses.

    Args:
        n_words: size V of the vocabulary, which is ordered by falling frequency.
        projection_dim: size P of one direction's output.
    """

    def __init__(self, n_words: int, projection_dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_words, projection_dim))
        # Starting from Zipf's law, the first steps need not spend themselves on frequencies.
        self.bias = nn.Parameter(torch.from_numpy(log_uniform(n_words)).float())
        bound = (3 / projection_dim) ** 0.5  # a variance of 1 / P
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits ``(M, V)`` of hidden vectors ``(M, P)``."""
        return F.linear(hidden, self.weight, self.bias)

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
            candidates: from `LogUniform.sample`, on the same device.
        """
        words = candidates.words
        # One gather for candidates and targets: its gradient is as large as the whole table.
        weight = F.embedding(torch.cat([words, targets]), self.weight)
        of_words, of_targets = weight.split([len(words), len(targets)])
        negatives = F.linear(hidden, of_words, self.bias[words] - candidates.log_expected)
        place = torch.full((len(self.weight),), -1, device=hidden.device)
        place[words] = torch.arange(len(words), device=hidden.device)
        hits = place[targets]
        rows = torch.nonzero(hits >= 0).squeeze(1)
        negatives[rows, hits[rows]] = -torch.inf
        positives = (hidden * of_targets).sum(dim=1) + self.bias[targets]
        positives = positives - candidates.log_expected_of_all[targets]
        total = torch.logaddexp(torch.logsumexp(negatives, dim=1), positives)
        return (total - positives).mean()


class Candidates:
    """Distinct words drawn for one step, with the logs of their expected counts.

    Attributes:
        words: ``(S,)`` the candidates.
        log_expected: ``(S,)`` for each of them, ``log(1 − (1 − p)^tries)``.
        log_expected_of_all: ``(V,)`` the same for every word of the vocabulary.
    """

    def __init__(self, words: torch.Tensor, log_expected_of_all: torch.Tensor):
        self.words = words
        self.log_expected_of_all = log_expected_of_all
        self.log_expected = log_expected_of_all[words]

    def to(self, device: torch.device) -> Candidates:
        return Candidates(self.words.to(device), self.log_expected_of_all.to(device))


def log_uniform(n_words: int) -> np.ndarray:
    """``log p(k)`` with ``p(k) = log((k + 2) / (k + 1)) / log(V + 1)``, near Zipf's law."""
    k = np.arange(n_words, dtype=np.float64)
    return np.log(np.log((k + 2) / (k + 1)) / np.log(n_words + 1))


class LogUniform:
    """Draws words by `log_uniform` probabilities.

    Args:
        n_words: size V of the vocabulary.
        n_candidates: distinct words a draw ends with, fewer than V.
    """

    def __init__(self, n_words: int, n_candidates: int):
        if not 1 <= n_candidates < n_words:
            raise ValueError(
                f"softmax.n_candidates is {n_candidates}, but the vocabulary has {n_words} words; "
                f'choose fewer candidates, or softmax.kind = "full".'
            )
        self.n_words, self.n_candidates = n_words, n_candidates
        self.log_miss = np.log1p(-np.exp(log_uniform(n_words)))  # log(1 − p)

    def sample(self, rng: np.random.Generator) -> Candidates:
        """Draw until `n_candidates` distinct words are there."""
        drawn = np.empty(0, dtype=np.int64)
        while True:
            u = rng.random(2 * self.n_candidates)
            new = np.exp(u * np.log(self.n_words + 1)).astype(np.int64) - 1
            drawn = np.append(drawn, np.minimum(new, self.n_words - 1))
            words, first = np.unique(drawn, return_index=True)
            if len(words) >= self.n_candidates:
                break
        kept = np.argsort(first)[: self.n_candidates]
        tries = int(first[kept[-1]]) + 1  # draws it took to find the last of them
        log_expected = np.log(-np.expm1(tries * self.log_miss))
        return Candidates(
            torch.from_numpy(np.sort(words[kept])),
            torch.from_numpy(log_expected.astype(np.float32)),
        )
