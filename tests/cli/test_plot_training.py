"""``python -m spacy elmo plot-training``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from spacy_elmo.cli import app

ENTRIES = [
    {"step": 10, "words": 400, "loss": 5.5, "lr": 0.001, "seconds": 1.0, "epoch": 0},
    {"step": 20, "words": 800, "loss": 5.0, "lr": 0.002, "seconds": 2.0, "epoch": 0},
    {"step": 20, "words": 800, "forward": 300.0, "backward": 200.0, "mean": 245.0},
]
PNG = b"\x89PNG\r\n\x1a\n"


def run(*arguments: Any) -> Result:
    command = ["plot-training", *map(str, arguments)]
    return CliRunner().invoke(app, command, env={"COLUMNS": "200"})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    path = tmp_path / "out"
    path.mkdir()
    (path / "log.jsonl").write_text("\n".join(map(json.dumps, ENTRIES)), encoding="utf-8")
    return path


def test_beside_the_log_or_elsewhere(out: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert run(out).exit_code == 0
    assert (out / "log.png").read_bytes().startswith(PNG)
    assert run(out, "--output", tmp_path / "plot.PDF").exit_code == 0
    assert (tmp_path / "plot.PDF").read_bytes().startswith(b"%PDF")
    assert run(out / "log.jsonl", "--file", tmp_path / "plot.svg").exit_code == 0
    assert "held-out perplexity" in (tmp_path / "plot.svg").read_text(encoding="utf-8")
    assert run(out, out / "log.jsonl", "-o", tmp_path / "two.html").exit_code == 0
    assert str(out) in (tmp_path / "two.html").read_text(encoding="utf-8")
    assert sorted(path.name for path in out.iterdir()) == ["log.jsonl", "log.png"]


def test_failures(out: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "log.jsonl").write_text("", encoding="utf-8")
    for arguments, said in [
        ([tmp_path / "gone"], "There is no log"),
        ([tmp_path], "has no losses yet"),
        ([out, "-o", out / "plot.doc"], ".png, .pdf, .jpg"),
        ([out, "--file", out / "plot"], "no suffix of a picture"),
        ([out, "--file", tmp_path / "gone" / "plot.png"], "gone"),
    ]:
        result = run(*arguments)
        assert (result.exit_code, said in " ".join(result.output.split())) == (1, True), said
    assert [path.name for path in out.iterdir()] == ["log.jsonl"]


def test_without_matplotlib(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(out)
    assert result.exit_code == 1
    assert "pip install 'spacy-elmo[viz]'" in " ".join(result.output.split())
