"""``python -m spacy elmo predict``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.lm.language_model import LanguageModel
from spacy_elmo.weights.layout import Card

from ..pipeline.helpers import write_language_model
from .helpers import fail, run, succeed

WORDS = ["the", ".", "river", "ran", "into", "sea", "She", "7", "'s"]
WAYS = ("forward", "backward", "both")


def predicted(*arguments: Any) -> list[dict[str, Any]]:
    return json.loads(succeed("predict", *arguments, "--json"))


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_language_model(tmp_path_factory.mktemp("weights") / "tiny", WORDS)


def test_every_blank_is_filled_by_its_sentence(weights: Path) -> None:
    first, second, third = predicted(
        "It ran. Let's ___ to (_____). She ___", "-w", weights, "--top", 4
    )
    lm = LanguageModel.load(weights)
    sentence = ["Let", "'s", "___", "to", "(", "___", ")", "."]
    for blank, words, place in [
        (first, sentence, 2), (second, sentence, 5), (third, ["She", "___"], 1)
    ]:  # fmt: skip
        for way, guesses in zip(WAYS, lm.fill(words, place, 4), strict=True):
            assert [guess["word"] for guess in blank[way]] == [word for word, _ in guesses]
            assert [guess["p"] for guess in blank[way]] == pytest.approx([p for _, p in guesses])
    assert (first["left"], first["right"]) == ("Let's ", " to (___).")
    assert (second["left"], second["right"]) == ("Let's ___ to (", ").")
    assert (third["left"], third["right"]) == ("She ", "")


def test_for_people(weights: Path) -> None:
    page = succeed("predict", "Let's ___ to it. She ___.", "-w", weights, "-n", 3)
    assert "  Let's [___] to it.\n" in page and "  She [___].\n" in page
    rows = re.findall(r"^    (left to right|right to left|both) +(.*)", page, re.M)
    assert len(rows) == 6 and all(re.fullmatch(r"(\w+ \d+\.\d%\s*){3}", row) for _, row in rows)
    everything = succeed("predict", "She ___.", "-w", weights, "-n", 100)
    assert everything.count("%") == 3 * 7  # all words but marks


def test_failures(weights: Path, tmp_path: Path) -> None:
    mute = write_language_model(tmp_path / "mute", WORDS, card=Card())
    said = "not UTF-8: after 'Caf' it has the byte 0xe9."
    assert said in fail("predict", "Caf\udce9. A ___", "-w", weights)
    assert "does not name their language" in fail("predict", "A ___ .", "-w", mute)
    assert run("predict", "A ___ .", "-n", 0).exit_code == 2
    assert predicted("A ___ .", "-w", mute, "--lang", "xx")


def test_an_output_that_lacks_characters(tmp_path) -> None:
    weights = write_language_model(tmp_path / "weights", ["é", "강", "."])

    def output(*arguments: str) -> str:
        command = [sys.executable, "-m", "spacy", "elmo", *arguments, "-w", str(weights)]
        environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
        result = subprocess.run(command, check=True, capture_output=True, env=environment)
        return result.stdout.decode("latin-1")

    assert "é ? [___]." in output("predict", "é 강 ___.")
    assert json.loads(output("predict", "é 강 ___.", "--json"))[0]["left"] == "é 강 "
