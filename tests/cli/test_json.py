"""``--json``: one document on the standard output, and all else on the standard error stream."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.main import get_group

from spacy_elmo.cli import app
from spacy_elmo.cli.options import print_json
from spacy_elmo.util import progress
from spacy_elmo.weights.find import find_weights

from . import helpers

# For people alone: a page, a config.
WITHOUT = {"add", "demo", "init-config"}
# What each command is given, and the names in its JSON.
COMMANDS = {
    "compare": (
        "tagger.cfg -w weights --seeds 1 --keep {out} "
        "--paths.train docs.spacy --paths.dev docs.spacy",
        "comparisons keep seeds",
    ),
    "info": ("weights", "weights parameters vectors architecture language#model card"),
    "download": ("", "cache downloaded published"),
    "encode": ("text.txt {out}.npy -w weights", "output rows vectors"),
    "convert": ("weights {out} --to published", "output format parameters"),
    "tokenize": ("text.txt {out}", "output sentences words"),
    "pretrain": (
        "pretrain.cfg {out} --paths.train shards --paths.dev shards --training.max_steps 11",
        "output steps words",
    ),
    "plot-training": ("log.jsonl -o {out}.png", "output"),
    "perplexity": (
        "text.txt -w weights",
        "weights text forward backward mean sentences words unknown unknown_rate vocabulary",
    ),
    "predict": ("It#was#___#. -w weights", "left right forward backward both"),
    "senses": (
        "the --in text.txt -o {out}.svg -w weights",
        "output word complete silhouette senses",
    ),
    "plot-mix": ("pipeline -o {out}.svg", "output mixes"),
}  # fmt: skip


@pytest.fixture
def run(inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command with --json, whose work is long enough to be reported."""
    monkeypatch.chdir(inputs)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)

    def run(command: str, arguments: str) -> Result:
        words = arguments.format(out=tmp_path / "out").split()
        words = [word.replace("#", " ") for word in words]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of random weights
            return helpers.run(command, *words, "--json")

    return run


def test_every_command_has_it_or_is_for_people() -> None:
    commands = get_group(app).commands
    having = {n for n, c in commands.items() if any("--json" in p.opts for p in c.params)}
    assert having == set(COMMANDS) == set(commands) - WITHOUT


@pytest.mark.parametrize("command", COMMANDS)
def test_one_document_and_nothing_else(command: str, run: Any) -> None:
    arguments, names = COMMANDS[command]
    if command in ("plot-training", "plot-mix", "senses"):
        pytest.importorskip("matplotlib")
        pytest.importorskip("sklearn")
    result = run(command, arguments)
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    found = data[0] if command == "predict" else data  # for each blank
    assert sorted(found) == sorted(name.replace("#", " ") for name in names.split())
    if "output" in found:
        assert Path(found["output"]).exists()


def test_warnings_are_on_the_error_stream(run: Any, tmp_path: Path) -> None:
    result = run("convert", "weights {out} --to native --lang qq --statistics text.txt")
    assert json.loads(result.stdout)["format"] == "native"
    assert find_weights(tmp_path / "out").card().meta["lang"] == "qq"
    assert "does not support the language 'qq'" in " ".join(result.stderr.split())


def test_what_is_not_finite_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"perplexity": float("inf"), "words": [1, float("nan")]})
    assert json.loads(capsys.readouterr().out) == {"perplexity": None, "words": [1, None]}
