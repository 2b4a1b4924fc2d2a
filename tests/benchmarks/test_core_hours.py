"""benchmarks/quality/core_hours.py at its smallest."""

from __future__ import annotations

import json
from pathlib import Path

import core_hours
import pytest

from spacy_elmo.lm.head import save_head
from spacy_elmo.lm.vocabulary import Vocabulary
from spacy_elmo.weights.layout import read_words
from spacy_elmo.weights.native import save_bilm

from ..pretraining.helpers import make_model, prose, write_text
from .conftest import Run


@pytest.mark.slow
def test_arms_of_equal_time(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the same start; each once."""
    monkeypatch.setattr(core_hours, "TIMED_STEPS", 20)
    words = [word for word in read_words(data / "eval_vocab.txt") if word]
    model, head = make_model(len(words))
    (start := tmp_path / "start").mkdir()
    save_bilm(model, start)
    save_head(head, Vocabulary(words), start)
    text, out = write_text(tmp_path / "text.txt", prose()), tmp_path / "out"
    quick = "softmax.n_candidates=16,training.batch_words=64"
    arguments = (data, start, text, out, "--seconds", 2)
    arms = [f"{name}:{quick},training.learning_rate={rate}" for name, rate in RATES.items()]
    run("core_hours", *arguments, *arms)
    lines = (out / "results.jsonl").read_text(encoding="utf-8")
    begun, same, learned = (json.loads(line)["found"] for line in lines.splitlines())
    assert same["words"] > 64
    assert same["enwiki"] == pytest.approx(begun["enwiki"], rel=0.01)
    assert learned["enwiki"] < begun["enwiki"] * 0.8  # it has read this very text
    assert 0 <= learned["names"] <= 100 and 0 <= learned["blimp"] <= 100
    run("core_hours", *arguments, arms[1])
    assert (out / "results.jsonl").read_text(encoding="utf-8") == lines


RATES = {"slow": 1e-9, "fast": 0.02}
