"""``--json``: one document on the standard output, and all else on the standard error stream."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from spacy.cli.init_config import init_config
from spacy.tokens import DocBin
from typer.main import get_group

from spacy_elmo.cli import app
from spacy_elmo.cli.options import print_json
from spacy_elmo.util import progress
from spacy_elmo.weights.find import find_weights

from ..pipeline.helpers import write_language_model
from ..pipeline.learning import make_examples, started
from ..pretraining.helpers import PROSE, config_text, make_config
from . import helpers

# For people alone: a page, a config.
WITHOUT = {"add", "demo", "init-config"}
# What each command is given, and the names in its JSON.
COMMANDS = {
    "compare": (
        "{tagger} -w {weights} --seeds 1 --keep {out} --paths.train {docs} --paths.dev {docs}",
        "comparisons keep seeds",
    ),
    "info": ("{weights}", "weights parameters vectors architecture language#model card"),
    "download": ("", "cache downloaded published"),
    "encode": ("{text} {out}.npy -w {weights}", "output rows vectors"),
    "convert": ("{weights} {out} --to published", "output format parameters"),
    "tokenize": ("{text} {out}", "output sentences words"),
    "pretrain": (
        "{config} {out} --paths.train {shards} --paths.dev {shards} --training.max_steps 11",
        "output steps words",
    ),
    "plot-training": ("{log} -o {out}.png", "output"),
    "perplexity": (
        "{text} -w {weights}",
        "weights text forward backward mean sentences words unknown unknown_rate vocabulary",
    ),
    "predict": ("It#was#___#. -w {weights}", "left right forward backward both"),
    "senses": (
        "the --in {text} -o {out}.svg -w {weights}",
        "output word complete silhouette senses",
    ),
    "plot-mix": ("{pipeline} -o {out}.svg", "output mixes"),
}  # fmt: skip


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What the commands read."""
    folder = tmp_path_factory.mktemp("json")
    text = folder / "text.txt"
    text.write_text(PROSE.replace("\n", "\n\n") * 3, encoding="utf-8")
    weights = write_language_model(folder / "weights", [*PROSE.split(), "was", "."])
    nlp, *_ = started(weights, steps=1)  # trains its mix
    nlp.to_disk(folder / "pipeline")
    tagger = init_config(lang="xx", pipeline=["tagger"])
    tagger["training"]["max_steps"] = 1
    tagger.to_disk(folder / "tagger.cfg")
    examples = make_examples(nlp)
    DocBin(docs=[example.reference for example in examples]).to_disk(folder / "docs.spacy")
    (folder / "config.cfg").write_text(config_text(make_config()), encoding="utf-8")
    (folder / "log.jsonl").write_text('{"step": 1, "words": 40, "loss": 5.5}\n', encoding="utf-8")
    helpers.succeed("tokenize", text, folder / "shards")
    names = ("weights", "pipeline", "shards")
    files = {"tagger": folder / "tagger.cfg", "docs": folder / "docs.spacy"}
    files |= {"text": text, "config": folder / "config.cfg", "log": folder / "log.jsonl"}
    return {**files, **{name: folder / name for name in names}}


@pytest.fixture
def run(places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command with --json, whose work is long enough to be reported."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)

    def run(command: str, arguments: str) -> Result:
        words = arguments.format(**places, out=tmp_path / "out").split()
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
    result = run("convert", "{weights} {out} --to native --lang qq --statistics {text}")
    assert json.loads(result.stdout)["format"] == "native"
    assert find_weights(tmp_path / "out").card().meta["lang"] == "qq"
    assert "does not support the language 'qq'" in " ".join(result.stderr.split())


def test_what_is_not_finite_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"perplexity": float("inf"), "words": [1, float("nan")]})
    assert json.loads(capsys.readouterr().out) == {"perplexity": None, "words": [1, None]}
