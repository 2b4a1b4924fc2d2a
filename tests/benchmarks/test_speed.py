"""The scripts that measure the speed of reading."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ..pipeline.helpers import write_weights
from .conftest import Run


@pytest.fixture
def text(tmp_path: Path) -> Path:
    text = tmp_path / "text.txt"
    text.write_text("A bank is here. So it is!\n\nNo bank.\n" * 3, encoding="utf-8")
    return text


def test_inference(run: Run, text: Path, tmp_path: Path) -> None:
    weights = write_weights(tmp_path / "weights")
    few = ("--threads", 1, "--words", 20, "--runs", 1)
    assert "| warm |" in run("inference", text, "--weights", weights, *few)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory from /proc")
def test_cost(run: Run, data: Path, text: Path) -> None:
    few = ("--steps", 2, "--words", 20, "--runs", 1)
    *packages, plain, elmo = run("cost", text, "--data", data, *few).splitlines()
    assert [line.partition(":")[0] for line in packages] == ["torch", "spacy"]
    assert plain.startswith("plain; ") and elmo.startswith("elmo; ")
    assert float(elmo.split()[1]) > 5 + float(plain.split()[1])  # MB: the weights


def test_pretraining(run: Run, text: Path) -> None:
    assert "\nratio: " in run("pretraining", text, "--words", 20, "--runs", 1)


@pytest.mark.slow
def test_training(run: Run, data: Path) -> None:
    first, *sides = run("training", data, "--components", "tagger", "--steps", 3).splitlines()
    assert first == "tagger, 3 steps, 3 epochs" and len(sides) == 2
    assert sides[0].endswith(", 1.00") and sides[1].startswith("with ELMo ")
