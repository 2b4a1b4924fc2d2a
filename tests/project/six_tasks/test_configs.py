"""Each task in each arm, and the commands of the project."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paper_tasks.arms import ARMS, TASKS, error_reduction, make_config
from spacy.util import load_model_from_config
from weasel.util.config import load_project_config

PROJECT = Path(__file__).parents[3] / "project" / "six_tasks"
COMMANDS = ("corpora", "train-tasks", "evaluate", "examples", "package")


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
    assert ("elmo" in config["nlp"]["pipeline"]) == (reads or ARMS[arm].subwords)
    assert ("elmo" in config["nlp"]["disabled"]) == (ARMS[arm].subwords and not reads)
    assert tok2vec["embed"]["include_static_vectors"] == ARMS[arm].subwords
    assert config["training"]["max_steps"] == 7
    assert config["training"]["optimizer"]["learn_rate"]["total_steps"] == 7
    assert config["corpora"]["train"]["share"] == 0.1


@pytest.mark.parametrize("task", TASKS)
def test_tasks(task: str) -> None:
    """Their configs are complete, and name the score that is reported."""
    config = make_config(task, "subwords and input", seed=3)
    nlp = load_model_from_config(config)
    assert nlp.pipe_names == ["elmo", TASKS[task].component]
    assert "subword_vectors" in config["initialize"]["before_init"]["@callbacks"]
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


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_all_without_downloads(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("assets", "runs", "project.lock", "__pycache__")
    project = Path(shutil.copytree(PROJECT, tmp_path / "project", ignore=ignored))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "spacy", "project", "run", "all", str(project)]
    command += ["--vars.size", "tiny"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    out = project / "runs" / "tiny"
    table = (out / "scores.md").read_text("utf-8").splitlines()
    assert len(table) == 2 + 6 and "81.4 → 84.6" in table[4]
    page = (out / "examples.html").read_text("utf-8")
    assert page.count("<h2>") == 6 and "Who sold the boat?" in page
    assert "no doc.spans" not in result.stdout
    code = (
        "import en_roles\n"  # the package, with the code inside
        "nlp = en_roles.load()\n"
        "doc = nlp.make_doc('Anna sold the boat.')\n"
        "doc.spans['predicates'] = [doc[1:2]]\n"
        "print(len(nlp(doc).spans['roles']) >= 0)"
    )
    package = out / "packages" / "en_roles-1.0.0"
    shutil.copy(package / "meta.json", package / "en_roles")  # as its setup.py does
    path = [str(package), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path)
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert loaded.stdout == "True\n", loaded.stderr
