"""A run of some minutes: times its first steps, and fits its schedule to the time."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import islice

from .checkpoint import State
from .corpus import CorpusPosition
from .evaluation import measure
from .prepare import Run
from .schedule import fit_to_epochs
from .train_step import train_step

N_STEPS, N_FIRST = 12, 4  # steps that are taken, and the first of them, which are not timed
N_WORDS = 1024  # in the evaluation that is timed
SHARE = 0.1  # the share of the time that evaluations take at most
EVALUATIONS = 5  # during a run, and one before it
AT_THE_END = 4  # as much time as this many evaluations: two models, and their statistics


def fit(run: Run, state: State) -> Run:
    """Time some steps and a small evaluation, and fit the schedule of a run to its minutes.

    The steps are taken with another state of the same size.

    Args:
        run: the run, whose settings have ``minutes``.
        state: its state, which gets the number of words for the last evaluations.

    Returns:
        The run, with `config.FITTED` settings for this time, or for its epochs if they end sooner.
    """
    run.notify("Timing the first steps")
    settings, progress, group, corpus = run.config.training, state.progress, state.group, run.corpus
    size = corpus.teacher.size if corpus.teacher else 0
    trial = State(run.config, len(run.vocab), group, teacher_size=size)
    ends = [time.monotonic()]
    for batch, _ in islice(corpus.batches(CorpusPosition(), trial.shares()), N_STEPS):
        float(train_step(trial, settings, batch, learning_rate=0.0))  # waits for a GPU
        ends.append(time.monotonic())
    n_read = measure(trial.model, trial.head, run.dev, N_WORDS).n_predicted
    now = time.monotonic()
    step, word = (ends[-1] - ends[N_FIRST]) / (N_STEPS - N_FIRST), (now - ends[-1]) / n_read
    left, n_dev = 60 * settings.minutes - (now - ends[0]), len(run.dev.tokens)
    sizes = plan(left, step, word, n_dev, settings.max_epochs * progress.epoch_steps)
    n_steps, n_words = (int(group.sum(n) / group.world_size) for n in sizes)  # the same for all
    run.notify(
        f"{n_steps:,} steps fit into --minutes {settings.minutes:g}: one takes {step:.2f} s, an "
        f"evaluation {word * n_words:.1f} s"
    )
    progress.final_words = n_words
    training = replace(
        settings,
        max_steps=n_steps,
        warmup_steps=n_steps // 20,
        decay_steps=n_steps // 3,
        eval_words=n_words,
        eval_every=-(-n_steps // EVALUATIONS),  # the last step has one, too
        log_every=max(1, min(n_steps // 20, 100)),
    )
    fitted = fit_to_epochs(training, progress.epoch_steps)
    progress.head_first = min(progress.head_first, fitted.head_first)  # 0 if the head is not new
    return replace(run, config=replace(run.config, training=training), settings=fitted)


def plan(seconds: float, step: float, word: float, n_words: int, most: int) -> tuple[int, int]:
    """The number of steps, and of the words in each evaluation, for which there is time.

    Args:
        seconds: the time that is left.
        step, word: the seconds for a step, and for a word in an evaluation.
        n_words: the number of words in the dev text.
        most: the largest number of steps; 0 for no limit.
    """
    seconds = min(seconds, most * step / (1 - SHARE)) if most else seconds
    evaluations = 1 + EVALUATIONS + AT_THE_END
    words = min(n_words, SHARE * seconds / evaluations / max(word, 1e-9))
    n_steps = max(2 * EVALUATIONS, int((seconds - evaluations * words * word) / step))
    return min(n_steps, most or n_steps), max(1, int(words))
