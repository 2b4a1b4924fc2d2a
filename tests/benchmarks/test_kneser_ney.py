"""The trigram model of benchmarks/quality/kneser_ney.py."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from kneser_ney import FALLBACK, KneserNey, discounts, with_boundaries

A, B, C = 3, 4, 5  # after <S>, </S> and <UNK>
N_WORDS = 6


def probability(model: KneserNey, *sentence: int) -> float:
    """Of the last word of a sentence that may go on."""
    return float(np.exp(model.log_probabilities(with_boundaries([sentence]))[-2]))


def test_by_hand() -> None:
    """Of "a b", "a b", "a c", with discounts of 0.5, 1 and 1.5 for counts of 1, 2, and more.

    Unigrams by the words before them: a 1 (<S>), b 1 (a), c 1 (a), </S> 2 (b, c); together 5, of
    which the discounts take 0.5 * 3 + 1 = 2.5, so γ = 0.5; the uniform probability is 1/5.
    """
    model = KneserNey(with_boundaries([[A, B], [A, B], [A, C]]), N_WORDS)
    p_b = (1 - 0.5) / 5 + 0.5 / 5
    p_end = (2 - 1) / 5 + 0.5 / 5
    p_unknown = 0.5 / 5
    # "<S> a" is counted as it stands, 3 times, less 1.5: γ = 0.5. Before the first word there is
    # only <S>, so it is predicted by this bigram.
    p_a = (1 - 0.5) / 5 + 0.5 / 5
    assert probability(model, A) == pytest.approx((3 - 1.5) / 3 + 0.5 * p_a)
    # "a b" and "a c" have one word before them each; n(a·) = 2, γ = (0.5 + 0.5) / 2.
    p_b_after_a = (1 - 0.5) / 2 + 0.5 * p_b
    # "<S> a b" 2 times, "<S> a c" once: n = 3, the discounts take 1 + 0.5, γ = 0.5.
    assert probability(model, A, B) == pytest.approx((2 - 1) / 3 + 0.5 * p_b_after_a)
    # "<S> a <UNK>" was not seen, nor "a <UNK>".
    assert probability(model, A, 2) == pytest.approx(0.5 * (0.5 * p_unknown))
    # "c b" was never seen before a word, nor was "b" anything but the end: one word before it.
    p_end_after_b = (1 - 0.5) / 1 + 0.5 * p_end
    [*_, end] = np.exp(model.log_probabilities(with_boundaries([[C, B]])))
    assert end == pytest.approx(p_end_after_b)


def test_probabilities_add_up() -> None:
    """To 1 after all pairs of words, seen or not, and before the first word."""
    rng = np.random.default_rng(0)
    text = [rng.integers(2, N_WORDS, size=rng.integers(1, 6)) for _ in range(50)]
    model = KneserNey(with_boundaries(text), N_WORDS)
    words = range(1, N_WORDS)
    for before in [(), *((w,) for w in words), *product(words, words)]:
        total = sum(probability(model, *before, word) for word in words)
        assert total == pytest.approx(1), before


def test_discounts() -> None:
    """Of Chen and Goodman, y = n1 / (n1 + 2 n2) = 0.5."""
    counts = np.repeat([1, 2, 3, 4, 7], [8, 4, 2, 1, 3])
    np.testing.assert_allclose(
        discounts(counts), [0, 1 - 2 * 0.5 * 4 / 8, 2 - 3 * 0.5 * 2 / 4, 3 - 4 * 0.5 * 1 / 2]
    )
    assert discounts(np.array([1, 1, 2])) is FALLBACK
