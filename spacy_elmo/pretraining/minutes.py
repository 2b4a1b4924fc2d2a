"""A run of some minutes: its first steps are timed, and its schedule is fitted to the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from itertools import islice, pairwise
from statistics import fmean

from .config import TrainingSettings
from .corpus import CorpusPosition, TrainingCorpus
from .state import State
from .train_step import train_step

N_STEPS, N_FIRST = 30, 5  # timed; the first of them set up what the others use
EVALUATIONS, SHARE = (3, 10), 0.1  # of a run, at least and at most, and of its time
AT_ITS_END = 2  # of the best model and of the last
# The settings that `fit` chooses.
FITTED = ("max_steps", "warmup_steps", "decay_steps", "eval_every", "log_every")


def asked(settings: TrainingSettings) -> dict[str, float]:
    """The minutes of some settings, and what they have before `fit` chooses it."""
    return {name: getattr(settings, name) for name in ("minutes", *FITTED)}


def fit(
    state: State,
    corpus: TrainingCorpus,
    evaluate: Callable[[State], object],
    print_line: Callable[[str], object],
) -> TrainingSettings:
    """Time the first steps of a run and an evaluation, on a copy of its state.

    Args:
        state: of the run.
        corpus: its text.
        evaluate: evaluates a state.
        print_line: prints what was measured.

    Returns:
        [training], of which `FITTED` are those of a run that takes so many ``minutes``, or of one
        that ends with its epochs if that is sooner.
    """
    settings, trial, group = state.settings, deepcopy(state), state.group
    trial.progress.head_first = 0
    ends = [time.monotonic()]
    for shares, _ in islice(corpus.batches(CorpusPosition(), trial.shares()), N_STEPS):
        float(train_step(trial, shares, learning_rate=0.0))  # waits for a GPU
        ends.append(time.monotonic())
    if group.is_first:
        evaluate(trial)
    evaluation = group.sum(time.monotonic() - ends[-1] if group.is_first else 0.0)
    step = fmean([end - start for start, end in pairwise(ends)][N_FIRST:])
    step = group.sum(step) / group.world_size
    n_steps, n_evaluations = plan(settings.minutes, step, evaluation)
    if settings.max_epochs:
        n_steps = min(n_steps, settings.max_epochs * state.progress.epoch_steps)
    print_line(
        f"{n_steps:,} steps in {settings.minutes:g} minutes: one takes {step:.2f} s, an evaluation "
        f"{evaluation:.0f} s"
    )
    return replace(
        settings,
        minutes=0.0,
        max_steps=n_steps,
        warmup_steps=n_steps // 20,
        decay_steps=n_steps // 3,
        eval_every=max(1, n_steps // n_evaluations),
        log_every=max(1, min(n_steps // 20, 100)),
    )


def plan(minutes: float, step: float, evaluation: float) -> tuple[int, int]:
    """How many steps fit into some minutes, and how many of them have an evaluation.

    Args:
        minutes: of the run.
        step, evaluation: seconds of one.
    """
    most = int(SHARE * 60 * minutes / max(evaluation, 1e-3))
    n_evaluations = max(EVALUATIONS[0], min(EVALUATIONS[1], most))
    left = 60 * minutes - (n_evaluations + AT_ITS_END) * evaluation
    return max(2 * n_evaluations, int(left / step)), n_evaluations
