from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from spacy_elmo.pretraining import minutes
from spacy_elmo.pretraining.checkpoint import CHECKPOINT
from spacy_elmo.pretraining.config import FITTED, read_config
from spacy_elmo.pretraining.log import read_log
from spacy_elmo.pretraining.train import pretrain

from .helpers import PROSE, make_config, prose, same_weights, stop_after, write_text


@hypothesis.settings(max_examples=200)
@hypothesis.given(
    st.floats(30, 36_000), st.floats(0.001, 5), st.floats(1e-6, 0.01), st.integers(500, 10**6),
    st.integers(0, 1000),
)  # fmt: skip
def test_evaluation_takes_a_tenth_at_most(
    seconds: float, step: float, word: float, n_words: int, most: int
) -> None:
    n_steps, n_read = minutes.plan(seconds, step, word, n_words, most)
    assert n_steps <= most if most else n_steps >= 10
    seconds = min(seconds, most * step / 0.9) if most else seconds
    assert n_read <= n_words
    assert 10 * n_read * word <= 0.1 * seconds + 10 * word  # up to one word of each


def test_a_dev_text_that_is_too_long_is_read_in_part(paths, tmp_path, monkeypatch) -> None:
    """At each evaluation, that of the finished models too, and as often as planned; the config has
    the number, and a resumed run knows that of the finished models."""
    out, dev = tmp_path / "out", write_text(tmp_path / "dev.txt", prose() * 20)
    monkeypatch.setattr(minutes, "plan", lambda *given: (10, 300))
    config = make_config(paths[0], dev, {"training.minutes": 60, "training.eval_words": 60})
    stop_after(monkeypatch, 5)
    pretrain(config, out, quiet=True)
    assert read_config(out / "pretrain.cfg").training.eval_words == 300
    pretrain(read_config(out / "pretrain.cfg"), out, resume=True, quiet=True)
    evaluations = [entry for entry in read_log(out / "log.jsonl") if "mean" in entry]
    assert [entry["step"] for entry in evaluations] == [2, 4, 6, 8, 10, 10, 10]
    assert {200 < entry["n_words"] < 320 for entry in evaluations} == {True}
    assert 20 * len(PROSE.split()) > 320


def test_the_schedule_is_that_of_the_time_also_of_a_resumed_run(
    paths, tmp_path, monkeypatch, capsys
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    monkeypatch.setattr(minutes, "plan", lambda *given: (12, 999))
    config = make_config(*paths, {"training.minutes": 60, "training.dropout": 0.2})
    pretrain(config, whole)
    assert "12 steps fit into --minutes 60: one takes " in capsys.readouterr().err
    written = read_config(whole / "pretrain.cfg")
    assert [getattr(written.training, name) for name in FITTED] == [12, 0, 4, 3, 999, 1]
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
    monkeypatch.setattr(minutes, "plan", lambda *given: (12, 999))
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
    settings = {"minutes": 60, "max_steps": 99, "warmup_steps": 0, "eval_every": 4, "log_every": 1}
    changes = {f"training.{name}": value for name, value in settings.items()}
    pretrain(make_config(*paths, changes), fitted, resume=True)
    assert "stay: max_steps, decay_steps, eval_every, eval_words. To" in capsys.readouterr().err


def test_epochs_end_a_run_sooner(paths, tmp_path) -> None:
    config = make_config(*paths, {"training.minutes": 60, "training.max_epochs": 2})
    progress = pretrain(config, tmp_path / "out", quiet=True)
    assert progress.is_finished and progress.step < 100
    assert read_config(tmp_path / "out" / "pretrain.cfg").training.decay_steps > 0


def test_a_run_takes_about_its_minutes(paths, tmp_path) -> None:
    config = make_config(*paths, {"training.minutes": 0.05, "training.max_steps": 10**6})
    progress = pretrain(config, tmp_path / "out", quiet=True)
    assert progress.step >= 10 and progress.seconds < 60
