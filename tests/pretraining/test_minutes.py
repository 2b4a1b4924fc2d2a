from __future__ import annotations

from pathlib import Path

import pytest

from spacy_elmo.pretraining import minutes
from spacy_elmo.pretraining.checkpoint import CHECKPOINT
from spacy_elmo.pretraining.config import FITTED, read_config
from spacy_elmo.pretraining.log import read_log
from spacy_elmo.pretraining.train import pretrain

from .helpers import make_config, same_weights, stop_after


def test_steps_in_some_minutes() -> None:
    assert minutes.plan(60, 1.0, 0.0) == (3600, 10)
    assert minutes.plan(60, 0.5, 10.0) == (2 * (3600 - 12 * 10), 10)
    assert minutes.plan(10, 1.0, 10.0) == (600 - 8 * 10, 6)  # fewer evaluations in a short time
    assert minutes.plan(0.01, 1.0, 30.0) == (6, 3)


def test_the_schedule_is_that_of_the_time_also_of_a_resumed_run(
    paths, tmp_path, monkeypatch, capsys
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    monkeypatch.setattr(minutes, "plan", lambda *given: (12, 3))
    config = make_config(*paths, {"training.minutes": 60, "training.dropout": 0.2})
    pretrain(config, whole)
    assert "12 steps fit into --minutes 60: one takes " in capsys.readouterr().err
    written = read_config(whole / "pretrain.cfg")
    assert [getattr(written.training, name) for name in FITTED] == [12, 0, 4, 4, 1]
    rates = [entry["lr"] for entry in read_log(whole / "log.jsonl") if "lr" in entry]
    assert rates[-5:] == pytest.approx([0.02, 0.02, 0.015, 0.01, 0.005])
    pretrain(written, tmp_path / "again", quiet=True)  # without the steps that were timed
    stop_after(monkeypatch, 7)
    assert pretrain(config, parts, quiet=True).step == 7
    monkeypatch.undo()
    other = make_config(*paths, {"training.minutes": 30})
    for given, out in ((other, parts), (config, tmp_path / "again")):
        with pytest.raises(ValueError, match=rf"not started with .*{out.name}.pretrain\.cfg'"):
            pretrain(given, out, resume=True, quiet=True)
    assert pretrain(config, parts, resume=True, quiet=True).step == 12
    for out in (tmp_path / "again", parts):
        assert same_weights(whole / CHECKPOINT, out / CHECKPOINT)


@pytest.fixture
def fitted(paths, tmp_path, monkeypatch) -> Path:
    """A run of 60 minutes, which are 12 steps."""
    monkeypatch.setattr(minutes, "plan", lambda *given: (12, 3))
    pretrain(make_config(*paths, {"training.minutes": 60}), tmp_path / "out", quiet=True)
    return tmp_path / "out"


def test_its_length_is_changed_with_what_it_wrote(paths, fitted, capsys) -> None:
    longer = read_config(fitted / "pretrain.cfg", {"training.max_steps": 15})
    assert pretrain(longer, fitted, resume=True).step == 15
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if line.startswith("Changed")] == [
        "Changed since the checkpoint: training.max_steps: 12 → 15"
    ]
    original = make_config(*paths, {"training.minutes": 60})
    assert pretrain(original, fitted, resume=True, quiet=True).step == 15


def test_settings_that_the_minutes_replace_are_named(paths, fitted, capsys) -> None:
    settings = {"minutes": 60, "max_steps": 99, "warmup_steps": 0, "eval_every": 3, "log_every": 1}
    changes = {f"training.{name}": value for name, value in settings.items()}
    pretrain(make_config(*paths, changes), fitted, resume=True)
    assert "stay: max_steps, decay_steps, eval_every. To change" in capsys.readouterr().err


def test_epochs_end_a_run_sooner(paths, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(minutes, "plan", lambda *given: (10_000, 3))
    config = make_config(*paths, {"training.minutes": 60, "training.max_epochs": 2})
    progress = pretrain(config, tmp_path / "out", quiet=True)
    assert progress.is_finished and progress.step < 100
    assert read_config(tmp_path / "out" / "pretrain.cfg").training.decay_steps > 0


def test_a_run_takes_about_its_minutes(paths, tmp_path) -> None:
    config = make_config(*paths, {"training.minutes": 0.05, "training.max_steps": 10**6})
    progress = pretrain(config, tmp_path / "out", quiet=True)
    assert progress.step >= 6 and progress.seconds < 60
