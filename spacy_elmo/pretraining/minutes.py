"""A run of some minutes: its first steps are timed, and its schedule is fitted to the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from itertools import islice

from ..lm.perplexity import Perplexity
from .checkpoint import State
from .corpus import CorpusPosition
from .prepare import Notify, Run
from .schedule import Schedule
from .train_step import train_step

N_STEPS, N_FIRST = 12, 4  # timed; the first of them set up what the others use
N_WORDS = 1024  # of the evaluation that is timed
SHARE = 0.1  # of the time, at most, for all evaluations
EVALUATIONS = 5  # during a run, and one before it
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
    ends = [time.monotonic()]
    for shares, _ in islice(run.corpus.batches(CorpusPosition(), trial.shares()), N_STEPS):
        float(train_step(trial, shares, learning_rate=0.0))  # waits for a GPU
        ends.append(time.monotonic())
    n_read = evaluate(trial, N_WORDS).n_predicted
    now = time.monotonic()
    times = (
        (ends[-1] - ends[N_FIRST]) / (N_STEPS - N_FIRST),
        (now - ends[-1]) / n_read,
        now - ends[0],
    )
    step, word, spent = (group.sum(seconds) / group.world_size for seconds in times)
    n_steps, eval_words, progress.final_words = plan(
        60 * settings.minutes - spent, step, word, int(run.dev.lengths.sum()), settings.eval_words,
        settings.max_epochs * progress.epoch_steps,
    )  # fmt: skip
    notify(
        f"{n_steps:,} steps fit into --minutes {settings.minutes:g}: one takes {step:.2f} s, an "
        f"evaluation {word * eval_words:.1f} s"
    )
    settings = replace(
        settings,
        max_steps=n_steps,
        warmup_steps=n_steps // 20,
        decay_steps=n_steps // 3,
        eval_words=eval_words,
        eval_every=-(-n_steps // EVALUATIONS),  # the last step has one, too
        log_every=max(1, min(n_steps // 20, 100)),
    )
    schedule = Schedule.plan(settings, progress.epoch_steps)
    progress.head_first = min(progress.head_first, schedule.settings.head_first)  # 0: no new head
    return replace(run, config=replace(run.config, training=settings), schedule=schedule)


def plan(
    seconds: float, step: float, word: float, n_words: int, eval_words: int, most: int
) -> tuple[int, int, int]:
    """What fits into some seconds: evaluations take `SHARE` of them at most, on fewer words if they
    must, and steps the rest.

    Args:
        seconds: that are left.
        step, word: seconds of a step, and of a word in an evaluation.
        n_words: of the dev text.
        eval_words: that an evaluation during the run reads at most; 0: all.
        most: steps at most; 0: any number.

    Returns:
        The steps, and the words of an evaluation during the run and of one at its end.
    """
    seconds = min(seconds, most * step / (1 - SHARE)) if most else seconds
    words, n_during = SHARE * seconds / max(word, 1e-9), EVALUATIONS + 1
    each = min(eval_words or n_words, n_words, words / (n_during + AT_ITS_END))
    final = min(n_words, (words - n_during * each) / AT_ITS_END)
    read = n_during * each + AT_ITS_END * final
    n_steps = max(2 * EVALUATIONS, int((seconds - word * read) / step))
    return min(n_steps, most or n_steps), max(1, int(each)), max(1, int(final))
