"""`elmo add` on the configs of `spacy init config`, by the commands that a user gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from arms import ARMS, make_nlp
from configs_matrix import COMPONENTS, LANGS, Case, cases, make_plain, run_case, write_data
from readme_commands import COMMANDS, WITH, WITHOUT, commands
from spacy.cli.init_config import init_config
from tasks import TASKS

from spacy_elmo import add_elmo
from spacy_elmo.weights.layout import Card

from ..pipeline.helpers import write_weights
from .conftest import Run

CASES = [
    Case(("tagger",), "efficiency", "en"),
    Case(("tagger", "parser"), "accuracy", "en"),
    Case(("ner", "textcat"), "efficiency", "en"),
    Case(("textcat_multilabel",), "accuracy", "de"),
    Case(("morphologizer", "trainable_lemmatizer"), "efficiency", "de"),
    Case(("senter", "entity_linker"), "efficiency", "xx"),
    Case(("span_finder", "spancat"), "accuracy", "xx"),
    Case(("spancat_singlelabel", "ner"), "efficiency", "ko"),
    Case(COMPONENTS, "efficiency", "ko"),
    Case(COMPONENTS, "accuracy", "en"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Annotated texts, and weights."""
    folder = tmp_path_factory.mktemp("configs")
    write_data(folder)
    write_weights(folder / "weights", card=Card({"name": "tiny", "lang": "xx"}))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_from_init_config_to_a_trained_pipeline(case: Case, folder: Path, tmp_path: Path) -> None:
    """`init config | elmo add`, then `debug config` and two steps of `train`."""
    spacy_command = [sys.executable, "-m", "spacy"]
    plain = make_plain(case, folder).to_str()  # that of `init config`, and what a linker needs
    options = ["--weights", folder / "weights", "--nlp.lang", case.lang, "--paths.vectors", "null"]
    data = [
        option
        for split in ("train", "dev")
        for option in (f"--paths.{split}", folder / "data.spacy")
    ]
    config, out = tmp_path / "config.cfg", tmp_path / "out"
    for arguments in (
        ["elmo", "add", "-", config, *options],
        ["debug", "config", config, *data],
        [
            "train",
            config,
            "-o",
            out,
            *data,
            "--training.max_steps",
            2,
            "--training.eval_frequency",
            2,
        ],
    ):
        command = [*spacy_command, *map(str, arguments)]
        done = subprocess.run(command, input=plain, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stdout + done.stderr
    nlp = spacy.load(out / "model-last")
    learning = {name for name in case.components if not name.startswith("textcat")}
    assert set(nlp.get_pipe("elmo").listening_components) >= learning
    assert nlp("Anna swims .").has_annotation("TAG") == ("tagger" in case.components)


def test_the_matrix(folder: Path) -> None:
    """A case of it, run as the script runs all of them."""
    every = list(cases(LANGS))
    assert len({case.name for case in every}) == (12 + 66 + 1) * 2 * 4
    run_case(Case(("tagger",), "accuracy", "ko"), folder, str(folder / "weights"))


@pytest.mark.parametrize(
    "name, arm",
    [
        ("tagger", "ELMo, input and output"),
        ("parser", "ELMo, input and output"),
        ("ner", "ELMo, mix (λ = 0.001)"),
        ("textcat", "ELMo, TextCatLinear"),
    ],
)
def test_the_recipe_is_what_was_measured(name: str, arm: str) -> None:
    """The same token vectors as in benchmarks/quality/downstream.py, and the same biLM."""
    measured = make_nlp(TASKS[name], ARMS[arm], {}).config.interpolate()
    optimize = "accuracy" if name == "textcat" else "efficiency"  # that one counts words alone
    plain = init_config(lang="en", pipeline=[name], optimize=optimize)
    plain["initialize"]["vectors"] = None  # of another package's
    ours = add_elmo(plain).interpolate()
    ours, measured = ours["components"], measured["components"]
    models = [each[name]["model"] for each in (ours, measured)]
    if name != "textcat":
        models = [model["tok2vec"] for model in models]
    assert models[0] == models[1]
    assert ours["elmo"] == measured["elmo"]


def test_readme_commands(run: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--data", data, "--sizes", "2", "--seeds", 0, "--max-steps", 2, "--tasks", "tagger")
    lines = run("readme_commands", out, *options).splitlines()
    assert [line.rsplit(" ", 1)[0] for line in lines] == [
        f"tagger 2 0 2 {arm}" for arm in (WITHOUT, WITH)
    ]
    assert run("readme_commands", out, *options).splitlines() == lines


def test_the_commands_of_an_arm() -> None:
    with_elmo = commands(TASKS["tagger"], WITH, 0, "en_sm", None)
    assert "\n".join(with_elmo).replace(" --system.seed 0", "") + "\n" == COMMANDS
    without = commands(TASKS["tagger"], WITHOUT, 0, "en_sm", 5)
    assert len(without) == len(with_elmo) - 1 and "elmo" not in "".join(without)
    assert "train plain.cfg" in without[1] and without[1].endswith("--training.max_steps 5")
