"""What an hour gains in each language: a run of few steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tables import LANGUAGE_ARMS as ARMS

from ..pretraining.helpers import PROSE
from .conftest import Run, pack


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_run_of_few_steps(data: Path, tmp_path: Path, run: Run) -> None:
    for name in ("novels.train", "novels.valid", "modern.train"):
        pack(data / "languages" / "de" / f"{name}.txt.xz", f"{PROSE}\n" * 60)
    given = ["--data", data, "--langs", "de", "--texts", "novels", "--size", "tiny"]
    given += ["--minutes", 0.05, "--steps", 3]
    run("languages", tmp_path, *given)
    lines = (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["unit"]["arm"] for line in lines] == list(ARMS)
    assert all(
        set(json.loads(line)["found"]["scores"]) == {"tagger", "parser", "ner"} for line in lines
    )
    run("languages", tmp_path, *given)
    assert (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines() == lines
    printed = run("unseen", tmp_path / "de-novels-0.05").splitlines()
    assert [line.partition(":")[0] for line in printed] == ["nothing"] * 2 + ["ELMo"] * 2
