"""The head: a softmax over the vocabulary, which both directions share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from ..bilm.sentence_batches import to_device
from ..bilm.torch_precision import rounding

NEVER = -1e30  # a logit without effect; infinite ones have no gradient where all are
LOGITS_AT_ONCE = 2**20  # 4 MiB in float32, which a CPU's cache holds


class SoftmaxHead(nn.Module):
    """``p(w | h) ∝ exp(h · weight_w + bias_w)``, with full and sampled losses.

    Args:
        n_words: size V of the vocabulary, whose words are sorted by frequency.
        projection_dim: size P of each direction's output.
    """

    def __init__(self, n_words: int, projection_dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_words, projection_dim))
        # From Zipf's law, so that the first steps need not learn frequencies.
        self.bias = nn.Parameter(torch.from_numpy(log_uniform(n_words)).float())
        bound = (3 / projection_dim) ** 0.5  # a variance of 1 / P
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits ``(M, V)`` from hidden vectors ``(M, P)``. Mixed precision rounds the product
        alone."""
        if rounding(hidden.device)[0] is not None:
            return F.linear(hidden, self.weight).to(self.bias.dtype).add_(self.bias)
        return F.linear(hidden, self.weight, self.bias)

    def loss(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy of the full softmax, in nats.

        Args:
            hidden: ``(M, P)``.
            targets: ``(M,)``.
        """
        positives = (hidden * F.embedding(targets, self.weight)).sum(dim=1) + self.bias[targets]
        return _CrossEntropy.apply(hidden, self.weight, self.bias, positives, targets)

    def sampled_loss(
        self, hidden: torch.Tensor, targets: torch.Tensor, candidates: Candidates
    ) -> torch.Tensor:
        """Mean cross-entropy of a softmax over each target and the candidates, in nats.

        Each logit is lowered by the log of the word's expected count among the candidates (Jean et
        al. 2015, eq. 12), so that the gradient tends to that of the full softmax. A candidate that
        is the target does not count twice.

        Args:
            hidden: ``(M, P)``.
            targets: ``(M,)``.
            candidates: from `LogUniformSampler.sample`, on the same device.
        """
        n = len(candidates.words)
        # One gather for candidates and targets: its gradient has the size of the whole table.
        words = torch.cat([candidates.words, targets])
        weight = F.embedding(words, self.weight)
        bias = self.bias[words] - candidates.log_expected(words)
        (weight, target), (bias, target_bias) = (t.split([n, len(targets)]) for t in (weight, bias))
        positives = (hidden * target).sum(dim=1) + target_bias
        index = torch.full((len(self.weight),), -1, device=hidden.device)
        index[words[:n]] = torch.arange(n, device=hidden.device)
        return _CrossEntropy.apply(hidden, weight, bias, positives, index[targets])


class _CrossEntropy(torch.autograd.Function):
    """The mean of ``log(exp(positive) + Σ exp(negative)) − positive``, where negatives are logits.

    The logits of a few rows fit into a CPU's cache, and their gradient is computed while they are
    there. So neither logits nor gradients are ever in memory as a whole.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,  # (M, P)
        weight: torch.Tensor,  # (S, P)
        bias: torch.Tensor,  # (S,)
        positives: torch.Tensor,  # (M,) the targets' logits
        hits: torch.Tensor,  # (M,) each target's row in `weight`, which is left out; -1: none
    ) -> torch.Tensor:
        product_type = rounding(hidden.device)[0] or hidden.dtype
        rows = max(1, LOGITS_AT_ONCE * (16 if hidden.is_cuda else 1) // len(weight))
        # 0 is added where no row is the target: to leave it out, the CPU would wait for the GPU.
        added = torch.where(hits < 0, 0.0, NEVER).to(bias.dtype).unsqueeze(1)
        with torch.autocast(hidden.device.type, enabled=False):
            inputs, weight = hidden.to(product_type), weight.to(product_type)
            # A frozen biLM needs no gradient of its hidden states.
            d_hidden = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
            d_positives = torch.empty_like(positives)
            d_weight = torch.zeros(weight.shape, dtype=bias.dtype, device=hidden.device)
            d_bias = torch.zeros_like(bias)
            total = torch.zeros((), dtype=bias.dtype, device=hidden.device)
            for start in range(0, len(hidden), rows):
                part = slice(start, start + rows)
                exps = torch.mm(inputs[part], weight.T).to(bias.dtype).add_(bias)
                exps.scatter_add_(1, hits[part].clamp(min=0).unsqueeze(1), added[part])
                positive = positives[part]
                largest = torch.maximum(exps.amax(dim=1), positive)
                exps.sub_(largest.unsqueeze(1)).exp_()
                exp = torch.exp(positive - largest)
                sums = exps.sum(dim=1).add_(exp)
                total += (largest + sums.log() - positive).sum()
                if any(ctx.needs_input_grad):
                    d_logits = exps.div_(sums.unsqueeze(1))
                    d_bias += d_logits.sum(dim=0)
                    d_logits = d_logits.to(product_type)
                    if d_hidden is not None:
                        d_hidden[part] = torch.mm(d_logits, weight)
                    d_weight += torch.mm(d_logits.T, inputs[part])
                    d_positives[part] = exp / sums - 1
        ctx.save_for_backward(d_hidden, d_weight, d_bias, d_positives)
        ctx.n_rows = len(hidden)
        return total / len(hidden)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        scale = d_loss / ctx.n_rows
        return (*(None if d is None else d * scale for d in ctx.saved_tensors), None)


@dataclass
class Candidates:
    """Distinct words that were drawn for one step.

    Attributes:
        words: ``(S,)``.
        tries: the number of draws that it took.
        log_miss: ``(V,)``, for each word the log probability ``log(1 − p)`` not to be drawn.
    """

    words: torch.Tensor
    tries: int
    log_miss: torch.Tensor

    def log_expected(self, words: torch.Tensor) -> torch.Tensor:
        """The log of each word's expected count, ``log(1 − (1 − p)^tries)``, ``(M,)``."""
        return torch.log(-torch.expm1(self.tries * self.log_miss[words]))


def log_uniform(n_words: int) -> np.ndarray:
    """``log p(k)``, where ``p(k) = log((k + 2) / (k + 1)) / log(V + 1)`` is close to Zipf's law."""
    k = np.arange(n_words, dtype=np.float64)
    return np.log(np.log((k + 2) / (k + 1)) / np.log(n_words + 1))


class LogUniformSampler:
    """Draws words with `log_uniform` probabilities.

    Args:
        n_words: size V of the vocabulary.
        n_candidates: the number of distinct words to draw. It is half of V if V is not larger than
            this, because the last rare words would take thousands of tries.
        device: where candidates are.
    """

    def __init__(self, n_words: int, n_candidates: int, device: torch.device | str = "cpu"):
        self.n_words = n_words
        self.n_candidates = n_candidates if n_candidates < n_words else n_words // 2
        log_miss = np.log1p(-np.exp(log_uniform(n_words)))  # log(1 − p)
        self.log_miss = torch.from_numpy(log_miss).float().to(device)

    def sample(self, rng: np.random.Generator) -> Candidates:
        """Draw `n_candidates` distinct words."""
        drawn: np.ndarray = np.empty(0, dtype=np.int64)
        while True:
            u = rng.random(2 * self.n_candidates)
            new = np.exp(u * np.log(self.n_words + 1)).astype(np.int64) - 1
            drawn = np.append(drawn, np.minimum(new, self.n_words - 1))
            words, first = np.unique(drawn, return_index=True)
            if len(words) >= self.n_candidates:
                break
        chosen = np.argsort(first)[: self.n_candidates]
        tries = int(first[chosen[-1]]) + 1  # until the last of them was drawn
        ids = to_device(np.sort(words[chosen]), self.log_miss.device)
        return Candidates(ids, tries, self.log_miss)
