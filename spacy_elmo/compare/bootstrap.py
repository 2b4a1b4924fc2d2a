"""Intervals of the difference between two scores, by the paired bootstrap (Efron 1979)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from spacy.training import Example

from .answers import count, find_answers

DRAWS = 1000  # of as many Docs as there are
SLOW_DRAWS = 200  # for scores that are no sums over Docs
PERCENT = (2.5, 97.5)

Floats = NDArray[np.float64]


def resample(
    name: str, examples: Sequence[Example], score: Callable[[list[Example]], float | None]
) -> Floats:
    """A score of the corpora that draws with replacement from these Docs give.

    The draws are the same for each pipeline.

    Args:
        name: of the score in spaCy's metrics.
        examples: the predicted Docs.
        score: computes it for a list, if it is no sum over Docs.

    Returns:
        One value for each draw, `DRAWS` or `SLOW_DRAWS` of them.
    """
    n = len(examples)
    draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=DRAWS)
    answers = [find_answers(name, example) for example in examples]
    counts = [count(each) for each in answers if each is not None]
    if len(counts) < n:
        lists = ([examples[i] for i in np.repeat(range(n), row)] for row in draws[:SLOW_DRAWS])
        return np.array([score(each) or 0.0 for each in lists])
    right, false, missed = (draws @ np.array(counts, dtype=float)).T
    kind = name[-2:]  # an accuracy is an F1 score in spaCy, too
    denominator = right + false * (kind != "_r") + missed * (kind != "_p")
    numerator = right
    if kind not in ("_p", "_r"):
        numerator, denominator = 2 * right, denominator + right
    return numerator / np.maximum(denominator, 1)


def interval(without: ArrayLike, with_elmo: ArrayLike) -> tuple[float, float]:
    """95% of the mean differences of seeds that are drawn with replacement, too.

    What a score would be on other Docs, and by other seeds, is both unknown.

    Args:
        without, with_elmo: what `resample` gives for each seed, ``(n_seeds, n_draws)``.
    """
    differences = np.asarray(with_elmo) - np.asarray(without)
    n, _ = differences.shape
    seeds = np.random.default_rng(1).integers(n, size=differences.shape)
    low, high = np.percentile(np.take_along_axis(differences, seeds, 0).mean(0), PERCENT)
    return float(low), float(high)
