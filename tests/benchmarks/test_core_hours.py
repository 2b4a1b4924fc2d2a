"""benchmarks/quality/core_hours.py at its smallest."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from core_hours import train

from spacy_elmo.lm.head import save_head
from spacy_elmo.lm.vocabulary import Vocabulary
from spacy_elmo.weights.layout import read_words
from spacy_elmo.weights.native import save_bilm

from ..pretraining.helpers import make_model, prose, write_text
from .conftest import Run


def test_a_stopped_arm_of_the_same_name(tmp_path: Path) -> None:
    """Is not continued with other settings, or for another time."""
    (folder := tmp_path / "fast-0").mkdir()
    (folder / "checkpoint.safetensors").touch()
    settings = {"paths.weights": "en_sm", "training.learning_rate": 1}
    before = json.dumps({**settings, "seconds": 4, "decay": 0.4}, sort_keys=True)
    (folder / "settings.json").write_text(before, encoding="utf-8")
    for rate, seconds in ((2, 4), (1, 5)):
        given = Namespace(out=tmp_path, start=tmp_path, seconds=seconds, decay=0.4)
        with pytest.raises(SystemExit, match="with other settings"):
            train("fast-0", {**settings, "training.learning_rate": rate}, given)
    given.seconds = 4  # so it goes on, and reads its start
    with pytest.raises(ValueError, match="so it is no directory"):
        train("fast-0", dict(settings), given)


def test_arms_of_equal_time(run: Run, data: Path, tmp_path: Path) -> None:
    """From the same start; each once; the table has them all."""
    words = [word for word in read_words(data / "eval_vocab.txt") if word]
    model, head = make_model(len(words))
    (start := tmp_path / "start").mkdir()
    save_bilm(model, start)
    save_head(head, Vocabulary(words), start)
    text, out = write_text(tmp_path / "text.txt", prose()), tmp_path / "out"
    quick = "training.compiled_lstm=false,softmax.n_candidates=16,training.batch_words=64"
    arguments = (data, start, text, out, "--seconds", 4)
    slow, fast = (f"{name}:{quick},training.learning_rate" for name in ("slow", "fast"))
    muon = f"muon:{quick},muon=0.02,training.learning_rate=1e-9"
    has_muon = hasattr(torch.optim, "Muon")
    run("core_hours", *arguments, f"{slow}=1e-9", f"{fast}=0.02", *([muon] if has_muon else []))
    found = [json.loads(line) for line in (out / "results.jsonl").open()]
    names = [row["arm"].partition(":")[0] for row in found]
    assert names == ["start", "slow", "fast", "muon"][: 3 + has_muon]
    begun, same, learned, *by_muon = found
    for row in (same, learned, *by_muon):
        assert 4 <= row["seconds"] < 6 and row["words"] > 64
    assert same["enwiki"] == pytest.approx(begun["enwiki"], rel=0.01)
    assert learned["enwiki"] < begun["enwiki"] / 2  # it has read this very text
    for row in by_muon:
        assert row["enwiki"] < begun["enwiki"] * 0.97  # with the matrices alone
    assert 0 <= learned["names"] <= 100 and 0 <= learned["blimp"] <= 100
    assert run("core_hours", *arguments, f"{fast}=0.02") == ""
    lines = run("core_hours", *arguments, "--table").splitlines()
    assert len(lines) == 2 + len(found)
    assert f"{learned['enwiki']:.1f}" in lines[4] and f"{learned['blimp']:.1f} |" in lines[4]
