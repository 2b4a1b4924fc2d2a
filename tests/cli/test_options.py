"""Options that several commands share."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from ..pipeline.helpers import write_language_model


def test_an_output_that_lacks_characters(tmp_path) -> None:
    weights = write_language_model(tmp_path / "weights", ["é", "강", "."])

    def output(*arguments: str) -> str:
        command = [sys.executable, "-m", "spacy", "elmo", *arguments, "-w", str(weights)]
        environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
        result = subprocess.run(command, check=True, capture_output=True, env=environment)
        return result.stdout.decode("latin-1")

    assert "é ? [___]." in output("predict", "é 강 ___.")
    assert json.loads(output("predict", "é 강 ___.", "--json"))[0]["left"] == "é 강 "
