from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.pretraining import train as loop
from spacy_elmo.pretraining.checkpoint import CHECKPOINT, Progress
from spacy_elmo.pretraining.log import read_log
from spacy_elmo.pretraining.schedule import learning_rate, run_length
from spacy_elmo.pretraining.train import pretrain

from .helpers import make_config, same_weights, stop_after

MINUTES = {"training.minutes": 0.5, "training.max_steps": 300, "training.dropout": 0.2}


@pytest.fixture(autouse=True)
def a_step_takes_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """And an evaluation none."""
    seconds, step = [0.0], loop.train_step

    def train_step(*given: Any) -> Any:
        seconds[0] += 1
        return step(*given)

    monkeypatch.setattr(loop, "train_step", train_step)
    monkeypatch.setattr(loop.time, "monotonic", lambda: seconds[0])


def test_warm_up_and_decay_are_shortened_in_proportion() -> None:
    settings = {"minutes": 1, "max_steps": 600, "warmup_steps": 60, "decay_steps": 200}
    training = make_config(changes={f"training.{name}": n for name, n in settings.items()}).training
    progress = Progress(step_seconds=1.0)
    assert run_length(training, progress) == 60
    rates = []
    for progress.step in range(60):
        rates.append(learning_rate(training, progress) / training.learning_rate)
    assert rates[:7] == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1, 1])
    assert rates[39:42] == pytest.approx([1, 1, 19 / 20]) and rates[-1] == pytest.approx(1 / 20)
    for progress in (Progress(), Progress(step_seconds=0.01)):  # not timed, or too fast
        assert run_length(training, progress) == 600


def test_a_run_takes_its_minutes_also_in_parts(paths, tmp_path, monkeypatch, capsys) -> None:
    whole, parts, config = tmp_path / "whole", tmp_path / "parts", make_config(*paths, MINUTES)
    assert pretrain(config, whole).step == 30
    assert "30 steps, since one takes 1.00 s and the run has 0.5 minutes" in capsys.readouterr().err
    assert read_log(whole / "log.jsonl")[-4]["lr"] == pytest.approx(config.training.learning_rate)
    for step in (26, 28):  # after some were timed
        with monkeypatch.context() as patch:
            stop_after(patch, step)
            assert pretrain(config, parts, resume=True, quiet=True).step == step
    assert pretrain(config, parts, resume=True, quiet=True).step == 30
    assert same_weights(whole / CHECKPOINT, parts / CHECKPOINT)
    longer = make_config(*paths, {**MINUTES, "training.minutes": 0.6})
    assert pretrain(longer, parts, resume=True).step == 36
    assert "Changed since the checkpoint: training.minutes: 0.5 → 0.6" in capsys.readouterr().err


def test_steps_and_epochs_end_it_sooner(paths, tmp_path: Path) -> None:
    for name, changes in (("steps", {"max_steps": 26}), ("epochs", {"max_epochs": 1})):
        limits = {f"training.{name}": n for name, n in changes.items()}
        config = make_config(*paths, {**MINUTES, **limits})
        progress = pretrain(config, tmp_path / name, quiet=True)
        assert progress.is_finished and progress.step < 30
