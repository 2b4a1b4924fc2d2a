"""How many steps of a pretraining fit into some minutes of one core of this machine."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import spacy
import torch
from spacy.cli._util import parse_config_overrides

from spacy_elmo.pretraining.config import read_config
from spacy_elmo.pretraining.schedule import Schedule
from spacy_elmo.pretraining.stats import count_corpus
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.text.shards import Shards

N_STEPS, N_FIRST = 30, 5  # measured; the first of them set up what the others use
BUFFER_WORDS = 100_000  # more than these read
EVALUATIONS, SHARE = (3, 10), 0.1  # of a run, at least and at most, and of its time
AT_ITS_END = 2  # of the best model and of the last


class Measured(Exception):
    """Ends a run whose speed is known."""


def measure_speed(config: Path, overrides: Sequence[str]) -> tuple[float, float]:
    """Take the first steps of a run, of which nothing stays.

    Args:
        config: of `elmo pretrain`.
        overrides: of its settings, as on the command line.

    Returns:
        Seconds of processor time of a step, and of an evaluation.
    """
    ends: list[float] = []

    def tick(info: object) -> None:
        ends.append(time.process_time())
        if len(ends) == N_STEPS + 1:
            raise Measured

    spacy.registry.loggers("clock")(lambda: lambda *given: (tick, lambda: None))
    settings = read_config(config, parse_config_overrides(list(overrides)))
    lengths = {"max_steps": 2 * N_STEPS, "warmup_steps": N_STEPS, "decay_steps": N_STEPS}
    settings = replace(
        settings,
        corpus=replace(settings.corpus, buffer_words=BUFFER_WORDS),
        # The last of these steps is followed by an evaluation.
        training=replace(
            settings.training,
            **lengths,
            eval_every=N_STEPS + 1,
            logger={"@loggers": "clock"},
        ),
    )
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, suppress(Measured):
        pretrain(settings, Path(folder), quiet=True)
    *steps, last = [end - start for start, end in pairwise(ends)][N_FIRST:]
    return fmean(steps), max(0.0, last - fmean(steps))


def most_steps(config: Path, overrides: Sequence[str]) -> int:
    """The steps of the passes over the text that a run's settings allow.

    Args:
        config, overrides: see `measure_speed`.
    """
    settings = read_config(config, parse_config_overrides(list(overrides)))
    assert settings.paths.train is not None
    text = Shards(settings.paths.train).sentences()
    endless = replace(settings.training, max_steps=10**9)
    stats = count_corpus(text, settings.corpus.max_words)
    return Schedule.plan(replace(settings, training=endless), stats).n_steps


def plan(minutes: float, step: float, evaluation: float) -> tuple[int, int]:
    """How many steps fit into some minutes of one core, and how many of them have an evaluation.

    Args:
        minutes: of processor time.
        step, evaluation: seconds of one.
    """
    most = int(SHARE * 60 * minutes / max(evaluation, 1e-3))
    n_evaluations = max(EVALUATIONS[0], min(EVALUATIONS[1], most))
    left = 60 * minutes - (n_evaluations + AT_ITS_END) * evaluation
    return max(2 * n_evaluations, int(left / step)), n_evaluations
