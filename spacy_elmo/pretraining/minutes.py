"""A run of some minutes: its first steps are timed, and its schedule is fitted to the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from itertools import islice, pairwise
from statistics import fmean

from .checkpoint import State
from .corpus import CorpusPosition
from .prepare import Notify, Run
from .schedule import Schedule
from .train_step import train_step

N_STEPS, N_FIRST = 30, 5  # timed; the first of them set up what the others use
EVALUATIONS, SHARE = (3, 10), 0.1  # of a run, at least and at most, and of its time
AT_ITS_END = 2  # of the best model and of the last


def fit(run: Run, state: State, evaluate: Callable[[State], object], notify: Notify) -> Run:
    """Time the first steps of a run and an evaluation, on a copy of its state.

    Args:
        run, state: of it.
        evaluate: evaluates a state.
        notify: prints what is done, and what was measured.

    Returns:
        The run with the `FITTED` settings of one that takes its minutes, or of one that ends with
        its epochs if that is sooner.
    """
    notify("Timing the first steps")
    settings, progress, trial, group = state.settings, state.progress, deepcopy(state), state.group
    trial.progress.head_first = 0
    ends = [time.monotonic()]
    for shares, _ in islice(run.corpus.batches(CorpusPosition(), trial.shares()), N_STEPS):
        float(train_step(trial, shares, learning_rate=0.0))  # waits for a GPU
        ends.append(time.monotonic())
    if group.is_first:
        evaluate(trial)
    evaluation = group.sum(time.monotonic() - ends[-1] if group.is_first else 0.0)
    step = fmean([end - start for start, end in pairwise(ends)][N_FIRST:])
    step = group.sum(step) / group.world_size
    n_steps, n_evaluations = plan(settings.minutes, step, evaluation)
    if settings.max_epochs:
        n_steps = min(n_steps, settings.max_epochs * progress.epoch_steps)
    notify(
        f"{n_steps:,} steps fit into --minutes {settings.minutes:g}: one takes {step:.2f} s, an "
        f"evaluation {evaluation:.0f} s"
    )
    settings = replace(
        settings,
        max_steps=n_steps,
        warmup_steps=n_steps // 20,
        decay_steps=n_steps // 3,
        eval_every=max(1, n_steps // n_evaluations),
        log_every=max(1, min(n_steps // 20, 100)),
    )
    schedule = Schedule.plan(settings, progress.epoch_steps)
    progress.head_first = min(progress.head_first, schedule.settings.head_first)  # 0: no new head
    return replace(run, config=replace(run.config, training=settings), schedule=schedule)


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
