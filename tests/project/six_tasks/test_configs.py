"""Each task in each arm, and the commands of the project."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paper_tasks.arms import TASKS, error_reduction, make_config
from spacy.util import load_model_from_config

PROJECT = Path(__file__).parents[3] / "project" / "six_tasks"


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
