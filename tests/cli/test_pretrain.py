"""``python -m spacy elmo pretrain``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from spacy_elmo.pretraining.checkpoint import CHECKPOINT, read_checkpoint

from ..pretraining.helpers import PROSE, config_text, make_config, stop_after
from . import helpers


def run(*arguments: Any) -> Result:
    return helpers.run("pretrain", *arguments)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.cfg"
    path.write_text(config_text(make_config()), encoding="utf-8")
    return path


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text(PROSE.replace("\n", "\n\n") * 3, encoding="utf-8")
    helpers.succeed("tokenize", tmp_path / "text.txt", tmp_path / "shards")
    return tmp_path / "shards"


def test_a_run_that_is_stopped_says_so(config, shards, tmp_path, monkeypatch) -> None:
    """Also which model there is, before the first evaluation and after it."""
    paths, out = ["--paths.train", shards, "--paths.dev", shards], tmp_path / "out"
    for step, resume, models in ((7, [], "model-last"), (13, ["--resume"], "model-best and")):
        stop_after(monkeypatch, step)
        result = run(config, out, *resume, *paths)
        assert result.exit_code == 130
        assert f"Stopped after step {step}; resume with --resume" in result.stderr
        assert f"' has {models}" in result.stderr
        assert read_checkpoint(out / CHECKPOINT)[0].step == step
        monkeypatch.undo()
    result = run(out / "pretrain.cfg", out, "--resume", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_minutes_and_overrides_of_the_environment(config, shards, tmp_path, monkeypatch) -> None:
    paths = f"--paths.train {shards} --paths.dev {shards}"  # from the environment, too
    monkeypatch.setenv("SPACY_CONFIG_OVERRIDES", paths)
    assert run(config, tmp_path / "out", "-q", "--minutes", 9).exit_code == 0
    assert read_checkpoint(tmp_path / "out" / CHECKPOINT)[1].training.minutes == 9


def test_as_a_command_of_spacy_whose_imports_stay_light() -> None:
    """Every command of spaCy imports ours: PyTorch must not come with it."""
    code = (
        "import sys, spacy.cli; before = set(sys.modules); import spacy_elmo.cli;"
        "print([m for m in set(sys.modules) - before if m.startswith(('torch', 'spacy_elmo'))])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "spacy_elmo.cli.pretrain" in result.stdout, result.stderr
    for heavy in ("'torch", "pretraining.train'", "bilm.model"):
        assert heavy not in result.stdout
