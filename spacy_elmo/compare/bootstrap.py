"""Confidence intervals for the difference of two scores, by the paired bootstrap (Efron 1979)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from spacy.training import Example

from .answers import count, find_answers

DRAWS = 1000  # each of as many Docs as there are
SLOW_DRAWS = 200  # for scores that do not count answers
PERCENT = (2.5, 97.5)

Floats = NDArray[np.float64]


def resample(
    name: str, examples: Sequence[Example], score: Callable[[list[Example]], float | None]
) -> Floats:
    """Compute a score for random draws of Docs, with replacement; each pipeline has the same draws.

    Args:
        name: name of the score in spaCy's metrics.
        examples: the predicted Docs.
        score: computes the score for a list of Docs, if it does not count answers.

    Returns:
        The score for each draw, ``(n_draws,)``: `DRAWS` or `SLOW_DRAWS` numbers.
    """
    n = len(examples)
    draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=DRAWS)
    answers = [find_answers(name, example) for example in examples]
    counts = [count(answer) for answer in answers if answer is not None]
    if len(counts) < n:
        lists = ([examples[i] for i in np.repeat(range(n), row)] for row in draws[:SLOW_DRAWS])
        return np.array([score(drawn) or 0.0 for drawn in lists])
    right, false, missed = (draws @ np.array(counts, dtype=float)).T
    kind = name[-2:]  # spaCy computes an accuracy as an F1 score too
    denominator = right + false * (kind != "_r") + missed * (kind != "_p")
    numerator = right
    if kind not in ("_p", "_r"):
        numerator, denominator = 2 * right, denominator + right
    return numerator / np.maximum(denominator, 1)


def interval(without: ArrayLike, with_elmo: ArrayLike) -> tuple[float, float]:
    """The 95% confidence interval of the mean difference, over draws of Docs and of seeds.

    Args:
        without, with_elmo: the results of `resample` for each seed, ``(n_seeds, n_draws)``.
    """
    differences = np.asarray(with_elmo) - np.asarray(without)
    n, _ = differences.shape
    seeds = np.random.default_rng(1).integers(n, size=differences.shape)
    low, high = np.percentile(np.take_along_axis(differences, seeds, 0).mean(0), PERCENT)
    return float(low), float(high)
