"""Options that several commands share."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from spacy_elmo.bilm.model import BiLM

from ..pipeline.helpers import write_language_model
from .helpers import succeed

TEXT = "The bank lent money.\nA bank ___ shut. The bank! A bank.\n"
COMMANDS = {
    "encode": ["TEXT", "OUT.npy", "-w", "WEIGHTS"],
    "perplexity": ["TEXT", "-w", "WEIGHTS"],
    "predict": ["The ___ flows.", "-w", "WEIGHTS"],
    "senses": ["bank", "--in", "TEXT", "-w", "WEIGHTS", "-o", "OUT.svg"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_how_the_weights_compute(command, tmp_path, monkeypatch) -> None:
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
    succeed(command, *arguments, *options)
    assert set(found) == {("bfloat16", True)}


def test_an_output_that_lacks_characters(tmp_path) -> None:
    weights = write_language_model(tmp_path / "weights", ["é", "강", "."])

    def output(*arguments: str) -> str:
        command = [sys.executable, "-m", "spacy", "elmo", *arguments, "-w", str(weights)]
        environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
        result = subprocess.run(command, check=True, capture_output=True, env=environment)
        return result.stdout.decode("latin-1")

    shown = output("demo", "-t", "Éa 강. Éa!")
    assert "éa, 2 times" in shown and "[Éa] ?." in shown
    assert "é ? [___]." in output("predict", "é 강 ___.")
    assert json.loads(output("predict", "é 강 ___.", "--json"))[0]["left"] == "é 강 "
