"""The scripts that measure the speed of reading."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ..pipeline.helpers import write_weights
from .conftest import BENCHMARKS, Run


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


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory from /proc")
def test_peers(text: Path, tmp_path: Path) -> None:
    """Ours alone, which needs no environment of its own; what is printed is what is written."""
    out = tmp_path / "speed.json"
    options = ["--runs", "1", "--settings", "float32", "--batch-sizes", "2", "--out", str(out)]
    command = [sys.executable, str(BENCHMARKS / "peers" / "speed.py"), str(text), "--peers"]
    done = subprocess.run([*command, *options], capture_output=True, check=True, text=True)
    found = json.loads(out.read_text(encoding="utf8"))
    assert found["words"] == 36
    row = found["each at its best"]["float32"]
    assert f"| float32 | {row['version']} | 2 | {row['words/s']:,} |" in done.stdout
