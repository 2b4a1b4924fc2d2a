from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from spacy_elmo.lm.softmax import Candidates, LogUniformSampler, SoftmaxHead, log_uniform

V, P, M = 30, 4, 7
HIDDEN = torch.randn(M, P, generator=torch.Generator().manual_seed(1))
TARGETS = torch.tensor([0, 2, 2, 5, 11, 28, 29])


@pytest.fixture
def head() -> SoftmaxHead:
    torch.manual_seed(0)
    return SoftmaxHead(V, P)


def logits_of(head: SoftmaxHead) -> np.ndarray:
    weight, bias = (p.detach().numpy().astype(np.float64) for p in (head.weight, head.bias))
    return HIDDEN.numpy().astype(np.float64) @ weight.T + bias


def log_expected(candidates: Candidates) -> np.ndarray:
    """Of every word, in double precision from the number of tries."""
    p = np.exp(log_uniform(len(candidates.log_miss)))
    return np.log(-np.expm1(candidates.tries * np.log1p(-p)))


def draw(n_candidates: int, seed: int = 0) -> Candidates:
    return LogUniformSampler(V, n_candidates).sample(np.random.default_rng(seed))


def loss_of(head: SoftmaxHead, hidden: torch.Tensor, n_candidates: int | None) -> torch.Tensor:
    """With all words, or with some that are drawn."""
    if n_candidates is None:
        return head.loss(hidden, TARGETS)
    return head.sampled_loss(hidden, TARGETS, draw(n_candidates))


def test_full_loss(head: SoftmaxHead) -> None:
    probabilities = np.exp(logits_of(head))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    expected = -np.log(probabilities[np.arange(M), TARGETS.numpy()]).mean()
    assert loss_of(head, HIDDEN, None).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("n_candidates", [1, 20])
def test_sampled_loss(head: SoftmaxHead, n_candidates: int) -> None:
    """Against the formula word by word: log-softmax over the target and all other candidates."""
    candidates = draw(n_candidates)
    logits = logits_of(head)
    losses = []
    for row, target in enumerate(TARGETS.tolist()):
        words = [target, *(w for w in candidates.words.tolist() if w != target)]
        corrected = [logits[row, w] - log_expected(candidates)[w] for w in words]
        losses.append(math.log(sum(map(math.exp, corrected))) - corrected[0])
    ours = loss_of(head, HIDDEN, n_candidates).item()
    assert ours == pytest.approx(np.mean(losses), rel=1e-5)


def test_a_target_far_above_the_candidates(head: SoftmaxHead) -> None:
    head.bias.data[TARGETS] += 1000
    assert loss_of(head, HIDDEN, 5).item() < 1000


@pytest.mark.parametrize("n_candidates", [None, 10])
def test_gradients_against_finite_differences(head: SoftmaxHead, n_candidates: int | None) -> None:
    head = head.double()

    def loss(hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        head.weight, head.bias = weight, bias
        return loss_of(head, hidden, n_candidates)

    inputs = [HIDDEN.double(), head.weight.detach().clone(), head.bias.detach().clone()]
    del head.weight, head.bias  # so that plain tensors can take their places
    assert torch.autograd.gradcheck(loss, [tensor.requires_grad_() for tensor in inputs])


@pytest.mark.parametrize("n_candidates", [None, 10])
def test_the_gradient_of_the_head_is_the_same_beside_a_frozen_biLM(
    head: SoftmaxHead, n_candidates: int | None
) -> None:
    gradients = []
    for trainable in (True, False):
        head.zero_grad()
        inputs = HIDDEN.clone().requires_grad_(trainable)
        loss_of(head, inputs, n_candidates).backward()
        assert (inputs.grad is not None) == trainable
        gradients.append([p.grad for p in head.parameters() if p.grad is not None])
    assert len(gradients[0]) == 2
    assert all(map(torch.equal, *gradients))


def test_words_are_drawn_by_their_probabilities() -> None:
    sampler, rng, n_draws = LogUniformSampler(V, 1), np.random.default_rng(0), 20_000
    counts = np.zeros(V)
    for _ in range(n_draws):
        candidates = sampler.sample(rng)
        counts[candidates.words] += 1
    p = np.exp(log_uniform(V))
    deviations = (counts - n_draws * p) / np.sqrt(n_draws * p * (1 - p))
    assert np.abs(deviations).max() < 4
    # One try gives one word: its expected count is its probability.
    assert candidates.tries == 1
    np.testing.assert_allclose(
        candidates.log_expected(torch.arange(V)), log_uniform(V), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("n_words", [30, 1000, 800_000])
@pytest.mark.parametrize("n_candidates", [1, 29, 8192])
def test_expected_counts_are_those_of_double_precision(n_words: int, n_candidates: int) -> None:
    """Though they are computed where the table is, in float32."""
    sampler = LogUniformSampler(n_words, min(n_candidates, n_words - 1))
    candidates = sampler.sample(np.random.default_rng(0))
    ours = candidates.log_expected(torch.arange(n_words))
    assert ours.dtype == torch.float32
    np.testing.assert_allclose(ours, log_expected(candidates), rtol=5e-7, atol=3e-7)


@pytest.mark.parametrize(("n_candidates", "n"), [(V - 1, V - 1), (V, V // 2), (V + 1, V // 2)])
def test_a_small_vocabulary_has_fewer_candidates(n_candidates: int, n: int) -> None:
    assert len(draw(n_candidates).words) == n
