"""The paper's table, on our own sentences."""

from __future__ import annotations

from pathlib import Path

import six_tasks
from results import Results, fingerprint

from .conftest import Run

PROJECT = Path(__file__).parents[2] / "project" / "six_tasks"


def test_a_table_that_is_continued(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    few = ("--data", PROJECT / "tiny", "--corpora", tmp_path / "corpora", "--steps", 2)
    few += ("--seeds", 0, "--tasks", "entailment", "--arms", "without", "input", "output")
    first = run("six_tasks", out, *few)
    assert [line.split()[:2] for line in first.splitlines()] == [
        ["entailment", "without"], ["entailment", "input"], ["entailment", "output"]
    ]  # fmt: skip
    assert run("six_tasks", out, *few) == first
    found = six_tasks.measured(Results(out), fingerprint("en_sm"))
    complete = [*six_tasks.lines(found, ("without", "input"))]
    assert len(complete) == 3 and complete[0] == "| | without | input | paper |"
    assert complete[2].endswith("| 88.0 → 88.7, +6% |")
