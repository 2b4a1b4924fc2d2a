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


def rates(n_steps: int, progress: Progress, **settings: float) -> list[float]:
    """Those of all steps, as shares of the highest."""
    training = make_config(changes={f"training.{name}": n for name, n in settings.items()}).training
    assert run_length(training, progress) == n_steps
    found = []
    for progress.step in range(n_steps):
        found.append(learning_rate(training, progress) / training.learning_rate)
    return found


def test_warm_up_and_decay_are_shares_of_the_minutes() -> None:
    settings = {"max_steps": 600, "warmup_steps": 60, "decay_steps": 200}
    found = rates(60, Progress(step_seconds=1.0), minutes=1, **settings)
    assert found[:4] == pytest.approx([1 / 3, 2 / 3, 1, 1])
    assert found[39:42] == pytest.approx([1, 1, 19 / 20]) and found[-1] == pytest.approx(1 / 20)
    for progress in (Progress(), Progress(step_seconds=0.01)):  # not timed, or too fast
        assert len(rates(600, progress, minutes=1, **settings)) == 600
    # Epochs end a run sooner, but warm-up and decay are shortened only where they do not fit.
    settings |= {"max_epochs": 1, "decay_steps": 20}
    found = rates(100, Progress(epoch_steps=100), **settings)
    assert found[58:61] == pytest.approx([59 / 60, 1, 1]) and found[-1] == pytest.approx(1 / 20)


def test_a_run_takes_its_minutes_also_in_parts(paths, tmp_path, monkeypatch, capsys) -> None:
    whole, parts, config = tmp_path / "whole", tmp_path / "parts", make_config(*paths, MINUTES)
    assert pretrain(config, whole).step == 30
    assert "30 steps, since one takes 1.00 s and the run has 0.5 minutes" in capsys.readouterr().err
    last = [entry["lr"] for entry in read_log(whole / "log.jsonl") if "lr" in entry][-1]
    assert last == pytest.approx(config.training.learning_rate / 10)  # of ten steps of decay
    for step in (26, 28):  # after some were timed
        with monkeypatch.context() as patch:
            stop_after(patch, step)
            assert pretrain(config, parts, resume=True, quiet=True).step == step
    assert pretrain(config, parts, resume=True, quiet=True).step == 30
    assert same_weights(whole / CHECKPOINT, parts / CHECKPOINT)
    longer = make_config(*paths, {**MINUTES, "training.minutes": 0.6})
    assert pretrain(longer, parts, resume=True).step == 36
    assert "Changed since the checkpoint: training.minutes: 0.5 → 0.6" in capsys.readouterr().err


def test_minutes_are_for_a_run_from_its_start(paths, tmp_path) -> None:
    short = make_config(*paths, {"training.max_steps": 4})
    pretrain(short, tmp_path / "out", quiet=True)
    with pytest.raises(ValueError, match=r"was not started with minutes. Leave out --minutes"):
        pretrain(make_config(*paths, MINUTES), tmp_path / "out", resume=True, quiet=True)


def test_steps_and_epochs_end_it_sooner(paths, tmp_path: Path) -> None:
    for name, changes in (("steps", {"max_steps": 26}), ("epochs", {"max_epochs": 1})):
        limits = {f"training.{name}": n for name, n in changes.items()}
        config = make_config(*paths, {**MINUTES, **limits})
        progress = pretrain(config, tmp_path / name, quiet=True)
        assert progress.is_finished and progress.step < 30
