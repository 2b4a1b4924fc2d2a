"""A run of some minutes: its first steps are timed, and its schedule is fitted to the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from itertools import islice, pairwise
from statistics import fmean
from typing import NamedTuple

from ..lm.perplexity import Perplexity
from .checkpoint import State
from .corpus import CorpusPosition
from .prepare import Notify, Run
from .schedule import Schedule
from .train_step import train_step

N_STEPS, N_FIRST = 30, 5  # timed; the first of them set up what the others use
N_WORDS = 1024  # of the evaluation that is timed
SHARE = 0.1  # of the time, at most: for all evaluations together, and for timing steps
EVALUATIONS = 3, 10  # during a run, at least and at most
AT_ITS_END = 4  # of the best model and of the last, and their statistics, which take less


def fit(
    run: Run, state: State, evaluate: Callable[[State, int], Perplexity], notify: Notify
) -> Run:
    """Time the first steps of a run and a small evaluation, on a copy of its state.

    Args:
        run, state: of it; sets how many words the finished models are evaluated on.
        evaluate: evaluates a state on about so many words.
        notify: prints what is done, and what was measured.

    Returns:
        The run with the `FITTED` settings of one that takes its minutes, or of one that ends with
        its epochs if that is sooner.
    """
    notify("Timing the first steps")
    settings, progress, trial, group = state.settings, state.progress, deepcopy(state), state.group
    trial.progress.head_first = 0
    time_left, ends = 60 * settings.minutes, [time.monotonic()]
    for shares, _ in islice(run.corpus.batches(CorpusPosition(), trial.shares()), N_STEPS):
        float(train_step(trial, shares, learning_rate=0.0))  # waits for a GPU
        ends.append(time.monotonic())
        is_long = ends[-1] - ends[0] > SHARE * time_left
        if group.sum(is_long) and len(ends) > N_FIRST + 1:
            break
    word, n_words = 0.0, int(run.dev.lengths.sum())
    if group.is_first:
        n_read = evaluate(trial, N_WORDS).n_predicted
        word = (time.monotonic() - ends[-1]) / n_read
    word = group.sum(word)
    step = fmean([end - start for start, end in pairwise(ends)][N_FIRST:])
    step = group.sum(step) / group.world_size
    spent = group.sum(time.monotonic() - ends[0]) / group.world_size
    at_start = int(run.config.paths.weights is not None)
    length, most = settings.minutes, settings.max_epochs * progress.epoch_steps
    if most:
        length = min(length, (spent + most * step / (1 - SHARE)) / 60)
    planned = plan(length, step, word, n_words, settings.eval_words, at_start, spent)
    n_steps, eval_words = min(planned.n_steps, most or planned.n_steps), planned.eval_words
    progress.final_words = planned.final_words
    notify(
        f"{n_steps:,} steps fit into --minutes {settings.minutes:g}: one takes {step:.2f} s, an "
        f"evaluation {word * (eval_words or n_words):.1f} s"
    )
    settings = replace(
        settings,
        max_steps=n_steps,
        warmup_steps=n_steps // 20,
        decay_steps=n_steps // 3,
        eval_words=eval_words,
        eval_every=-(-n_steps // planned.n_evaluations),  # the last step has one, too
        log_every=max(1, min(n_steps // 20, 100)),
    )
    schedule = Schedule.plan(settings, progress.epoch_steps)
    progress.head_first = min(progress.head_first, schedule.settings.head_first)  # 0: no new head
    return replace(run, config=replace(run.config, training=settings), schedule=schedule)


class Plan(NamedTuple):
    """What fits into some minutes.

    Attributes:
        n_steps: steps of the run.
        n_evaluations: how many of them have an evaluation.
        eval_words, final_words: that an evaluation during the run reads, and one of a finished
            model; 0: all.
    """

    n_steps: int
    n_evaluations: int
    eval_words: int
    final_words: int


def plan(
    minutes: float,
    step: float,
    word: float,
    n_words: int,
    eval_words: int,
    at_start: int = 0,
    spent: float = 0.0,
) -> Plan:
    """What fits into some minutes: evaluations take `SHARE` of them at most, on fewer words if
    they must, and steps the rest.

    Args:
        minutes: of the run.
        step, word: seconds of a step, and of a word in an evaluation.
        n_words: of the dev text.
        eval_words: that an evaluation reads at most; 0: all.
        at_start: evaluations before the first step.
        spent: seconds of the run that are over.
    """
    fewest, most = EVALUATIONS
    words = SHARE * 60 * minutes / max(word, 1e-9)  # of all evaluations
    given = min(eval_words or n_words, n_words)
    each = min(float(given), words / (at_start + fewest + AT_ITS_END))
    final = min(n_words, (words - (at_start + fewest) * each) / AT_ITS_END)
    fit = (words - AT_ITS_END * final) / each - at_start
    n_evaluations = max(fewest, min(most, int(fit)))
    read = (at_start + n_evaluations) * each + AT_ITS_END * final
    n_steps = int((60 * minutes - spent - word * read) / step)
    return Plan(
        max(2 * n_evaluations, n_steps),
        n_evaluations,
        eval_words if each == given else max(1, int(each)),
        0 if final == n_words else max(1, int(final)),
    )
