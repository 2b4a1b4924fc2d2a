"""How many steps of a pretraining fit into some minutes of one core of this machine."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import torch

from spacy_elmo.cli.pretrain_config import read_spacy_config
from spacy_elmo.pretraining.config import Entries
from spacy_elmo.pretraining.train import pretrain

N_STEPS, N_FIRST = 30, 5  # measured; the first of them set up what the others use
N_EVALUATIONS = 12  # of a run, those at its end included


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

    @contextmanager
    def clock(entries: Entries) -> Iterator[Callable[[Entries], None]]:
        def tick(entries: Entries) -> None:
            ends.append(time.process_time())
            if len(ends) == N_STEPS + 1:
                raise Measured

        yield tick

    settings = read_spacy_config(config, overrides)
    lengths = {"max_steps": 2 * N_STEPS, "warmup_steps": N_STEPS, "decay_steps": N_STEPS}
    # The last of these steps is followed by an evaluation.
    training = replace(settings.training, **lengths, eval_every=N_STEPS + 1)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        try:
            pretrain(replace(settings, training=training, make_logger=clock), Path(folder), quiet=True)
        except Measured:
            pass
    seconds = [end - start for start, end in zip(ends, ends[1:], strict=False)]
    *steps, last = seconds[N_FIRST:]
    return fmean(steps), max(0.0, last - fmean(steps))


def steps_within(minutes: float, step: float, evaluation: float) -> int:
    """The steps that fit into some minutes of one core, with the evaluations of the run.

    Args:
        minutes: of processor time.
        step, evaluation: seconds of one.
    """
    return max(10, int((60 * minutes - N_EVALUATIONS * evaluation) / step))
