"""Each task in each arm, and the commands of the project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paper_tasks.arms import ARMS, TASKS, error_reduction, make_config
from scripts import train
from scripts.check import main as check
from scripts.names import choose
from spacy.util import load_model_from_config
from weasel.util.config import load_project_config

from ...pipeline.helpers import write_weights
from .helpers import make_nlp, write_tiny

PROJECT = Path(__file__).parents[3] / "project" / "six_tasks"
COMMANDS = ("check", "corpora", "train-tasks", "evaluate", "examples", "package")


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("task", ["roles", "ner"])
def test_arms(task: str, arm: str, tmp_path: Path) -> None:
    config = make_config(task, arm, train="train.spacy", dev="dev.spacy", share=0.1, steps=7)
    tok2vec = config["components"][TASKS[task].component]["model"]["tok2vec"]
    given = {"elmo": ARMS[arm].elmo, "output_elmo": ARMS[arm].output_elmo}
    for place, settings in given.items():
        assert (tok2vec.get(place) is None) == (settings is None)
        assert settings is None or settings.items() <= tok2vec[place].items()
    reads = any(settings is not None for settings in given.values())
    assert ("elmo" in config["nlp"]["pipeline"]) == reads
    assert config["training"]["max_steps"] == 7
    assert config["training"]["optimizer"]["learn_rate"]["total_steps"] == 7
    assert config["corpora"]["train"]["share"] == 0.1


@pytest.mark.parametrize("task", TASKS)
def test_tasks(task: str) -> None:
    """Their configs are complete, and name the score that is reported."""
    config = make_config(task, "input", seed=3)
    nlp = load_model_from_config(config)
    assert nlp.pipe_names == ["elmo", TASKS[task].component]
    assert config.interpolate()["training"]["seed"] == 3
    if task != "gap":
        weights = config["training"]["score_weights"]
        assert TASKS[task].score in weights or task == "sentiment"


def test_error_reduction() -> None:
    """As the paper's table has them."""
    found = {name: task for name, task in TASKS.items() if task.without is not None}
    gone = [round(error_reduction(task.without, task.with_elmo), 1) for task in found.values()]
    assert dict(zip(found, gone, strict=True)) == {
        "questions": 24.9, "entailment": 5.8, "roles": 17.2, "coreference": 9.8, "ner": 21.0,
        "sentiment": 6.8,
    }  # fmt: skip


def test_workflow() -> None:
    config = load_project_config(PROJECT)
    assert tuple(config["workflows"]["all"]) == COMMANDS
    assert {command["name"] for command in config["commands"]} == set(COMMANDS)


def test_names() -> None:
    known = [*ARMS]
    assert choose("arms", "without,input", known) == ["without", "input"]
    assert choose("arms", "without, input and output", known) == ["without", "input and output"]


@pytest.mark.parametrize("names", ["without,inputs", "", "input and"])
def test_unknown_names(names: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        choose("arms", names, list(ARMS))
    error = capsys.readouterr().out
    assert f"--vars.arms: there is no {names.split(',')[-1]!r}" in error
    assert "Choose from: without; input;" in error


def run_script(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"scripts.{name}", *arguments]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("number", "wrong", "message"),
    [
        (0, "tinny", "--vars.size: there is no 'tinny'"),
        (1, "ner,nre", "--vars.tasks: there is no 'nre'"),
        (2, "without,inputs", "--vars.arms: there is no 'inputs'"),
        (3, "my_weights", "Cannot read --vars.weights"),
        (4, "latest", "--vars.version: 'latest' is none"),
    ],
)
def test_what_later_steps_are_given(
    number: int, wrong: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Is seen before data are read and tasks trained."""
    given = ["tiny", "ner", "without,input", "en_sm", "1.0.0"]
    check(*given)
    given[number] = wrong
    with pytest.raises(SystemExit):
        check(*given)
    assert message in capsys.readouterr().out


@pytest.mark.parametrize("name", ["corpora", "train"])
def test_unknown_size(name: str, tmp_path: Path) -> None:
    result = run_script(name, str(tmp_path), "--size", "tinny")
    assert result.returncode == 1 and "--vars.size: there is no 'tinny'" in result.stdout


def test_unknown_weights(tmp_path: Path) -> None:
    result = run_script("train", str(tmp_path), "--weights", "my_weights")
    assert result.returncode == 1
    printed = " ".join(result.stdout.split())
    assert "'my_weights'" in printed and "As a path, they are /" in printed


def test_weights_that_were_trained_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the same directory: what reads them is trained again."""
    trained: list[str] = []
    monkeypatch.setattr(train, "train", lambda config, out: trained.append(out.name))
    weights = write_weights(tmp_path / "weights")
    write_tiny(tmp_path / "corpus", "ner")
    given = {"size": "tiny", "tasks": "ner", "weights": str(weights)}
    train.main(tmp_path, **given)
    train.main(tmp_path, **given)
    assert trained == ["ner-without", "ner-input"]
    shutil.rmtree(weights)
    write_weights(weights, seed=1)
    train.main(tmp_path, **given)
    assert trained == ["ner-without", "ner-input", "ner-input"]


def test_packages(corpora: Path, tmp_path: Path) -> None:
    """Two in one process, each with the code inside."""
    for task in ("roles", "coreference"):
        out = tmp_path / "models" / f"{task}-input"
        out.mkdir(parents=True)
        make_nlp(corpora, task).to_disk(out / "model-best")
    result = run_script("package", str(tmp_path), "--tasks", "roles,coreference")
    assert result.returncode == 0, result.stdout + result.stderr
    code = (
        "import en_coreference, en_roles\n"
        "from en_roles.inputs import mark_predicates\n"
        "nlp = en_roles.load()\n"
        "doc = nlp(mark_predicates(nlp.make_doc('Anna sold the boat.'), [1]))\n"
        "print(doc.spans['predicates'][0], 'roles' in doc.spans)\n"
        "print(en_coreference.load()('Anna left.'))"
    )
    packages = list((tmp_path / "packages").iterdir())
    for package in packages:  # as its setup.py does
        shutil.copy(package / "meta.json", package / package.name.removesuffix("-1.0.0"))
    path = os.pathsep.join([*map(str, packages), os.environ.get("PYTHONPATH", "")])
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert loaded.stdout == "sold True\nAnna left.\n", loaded.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_all_without_downloads(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("assets", "runs", "project.lock", "__pycache__")
    project = Path(shutil.copytree(PROJECT, tmp_path / "project", ignore=ignored))
    command = [sys.executable, "-m", "spacy", "project", "run", "all", str(project)]
    command += ["--vars.size", "tiny"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    out = project / "runs" / "tiny"
    table = (out / "scores.md").read_text("utf-8").splitlines()
    assert "error reduction, without → input" in table[0]
    assert len(table) == 2 + 6 and "81.4 → 84.6" in table[4]
    page = (out / "examples.html").read_text("utf-8")
    assert page.count("<h2>") == 6 and "Who sold the boat?" in page
    assert "no doc.spans" not in result.stdout
    assert "Dover. She" not in result.stdout  # mentions stay in the sentence
    assert len(list((out / "packages").iterdir())) == 6
