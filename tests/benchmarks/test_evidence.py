"""`evidence.py`: the page is what its results say; all parts, at their smallest."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import six_tasks
import tables
from results import Results, fingerprint

from .conftest import Run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
CHEAP = ("perplexity", "registers", "blimp", "similarity", "senses", "texts")


def test_the_page_is_what_was_measured() -> None:
    """Today's weights; if a number differs: `evidence.py --write-docs`."""
    results = Results(ROOT / "benchmarks" / "results" / "en_sm.jsonl")
    page, missing = tables.fill(PAGE, results, fingerprint("en_sm"))
    assert page == PAGE and not missing
    shown = {name for _, name, _ in tables.MARKED.findall(PAGE)}
    assert shown == {*tables.TABLES, "speed", "cost"}


def test_the_weights_of_languages() -> None:
    """Their table on the other page: a row for each folder of project/weights but English."""
    page = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
    assert tables.fill_languages(page) == page
    folders = {path.parent.name for path in ROOT.glob("project/weights/*_sm/config.json")}
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) == folders


@pytest.mark.slow
def test_cheap_parts(run: Run, data: Path, tmp_path: Path) -> None:
    """Each unit is measured once for the same weights."""
    arguments = ("--data", data, "--quick", "--out", tmp_path / "found.jsonl", "--parts", *CHEAP)
    run("evidence", *arguments)
    lines = (tmp_path / "found.jsonl").read_text(encoding="utf-8")
    run("evidence", *arguments)
    assert (tmp_path / "found.jsonl").read_text(encoding="utf-8") == lines
    records = list(map(json.loads, lines.splitlines()))
    assert {record["part"] for record in records} == {*CHEAP, "tasks"}


def test_parts_that_train(run: Run, data: Path, tmp_path: Path) -> None:
    arguments = ("--data", data, "--quick", "--out", tmp_path / "found.jsonl")
    few = ("--only", "tagger, 500, ELMo, mix", "--parts", "arms", "tasks")
    printed = run("evidence", *arguments, *few)
    assert len(set(printed.splitlines())) == 5  # seeds, one of which both parts have
    assert run("evidence", *arguments, "--parts", "noise", "--only", "HashEmbedCNN") != ""


def test_six_tasks(run: Run, tmp_path: Path) -> None:
    """The paper's table on our own sentences, which is continued."""
    out = tmp_path / "out.jsonl"
    few = ("--data", ROOT / "project" / "six_tasks" / "tiny", "--corpora", tmp_path / "corpora")
    few += ("--steps", 2, "--seeds", 0, "--tasks", "entailment")
    few += ("--arms", "without", "input", "output")
    first = run("six_tasks", out, *few)
    assert [line.split()[:2] for line in first.splitlines()] == [
        ["entailment", "without"], ["entailment", "input"], ["entailment", "output"]
    ]  # fmt: skip
    assert run("six_tasks", out, *few) == first
    found = six_tasks.measured(Results(out), fingerprint("en_sm"))
    complete = [*six_tasks.lines(found, ("without", "input"))]
    assert len(complete) == 3 and complete[0] == "| | without | input | paper |"
    assert complete[2].endswith("| 88.0 → 88.7, +6% |")
