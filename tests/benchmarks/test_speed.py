"""The scripts that measure the speed of reading."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from ..pipeline.helpers import write_weights
from .conftest import Run


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A text and weights."""
    text = tmp_path / "text.txt"
    text.write_text("A bank is here. So it is!\n\nNo bank.\n" * 3, encoding="utf-8")
    return str(text), str(write_weights(tmp_path / "weights"))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_inference(
    precision: str,
    files: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, weights = files
    few = ["--threads", "1", "--words", "20", "--runs", "1"]
    arguments = [text, "--weights", weights, "--precision", precision, *few]
    monkeypatch.setattr(sys, "argv", ["inference", *arguments])
    module = import_module("inference")
    monkeypatch.setattr(module.torch, "set_float32_matmul_precision", lambda name: None)
    module.main()
    assert "| warm |" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory from /proc")
def test_cost(run: Run, data: Path, files: tuple[str, str]) -> None:
    few = ("--steps", 2, "--words", 20, "--runs", 1)
    *packages, plain, elmo = run("cost", files[0], "--data", data, *few).splitlines()
    assert [line.partition(":")[0] for line in packages] == ["torch", "spacy"]
    assert plain.startswith("plain; ") and elmo.startswith("elmo; ")
    assert float(elmo.split()[1]) > 8 + float(plain.split()[1])  # MB: the weights
