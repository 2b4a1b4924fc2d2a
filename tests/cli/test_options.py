"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.cli import app

from ..pipeline.helpers import write_language_model

TEXT = "The bank lent money.\nA bank ___ shut. The bank! A bank.\n"
COMMANDS = {
    "encode": ["TEXT", "OUT.npy", "-w", "WEIGHTS"],
    "perplexity": ["WEIGHTS", "TEXT"],
    "predict": ["The ___ flows.", "-w", "WEIGHTS"],
    "neighbors": ["bank", "--in", "TEXT", "-w", "WEIGHTS"],
    "senses": ["bank", "--in", "TEXT", "-w", "WEIGHTS", "-o", "OUT.html"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_how_the_weights_compute(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command that reads a text of any length has both options."""
    weights = write_language_model(tmp_path / "weights", ["the", "The", "bank", "money", "."])
    text = tmp_path / "text.txt"
    text.write_text(TEXT, encoding="utf-8")
    found = []
    set_precision = BiLM.set_precision

    def spy(bilm: BiLM, precision: str, compiled: bool = False) -> BiLM:
        found.append((precision, compiled))
        return set_precision(bilm, precision, compiled)

    monkeypatch.setattr(BiLM, "set_precision", spy)
    names = {"TEXT": str(text), "WEIGHTS": str(weights)}
    arguments = [names.get(x, x.replace("OUT", str(tmp_path / "out"))) for x in COMMANDS[command]]
    options = ["--precision", "bfloat16", "--compiled"]
    result = CliRunner().invoke(app, [command, *arguments, *options])
    assert result.exit_code == 0, result.output
    assert set(found) == {("bfloat16", True)}
