"""`evidence.py`: the page is what its results say; all parts, at their smallest."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
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


def test_write_docs(run: Run, tmp_path: Path) -> None:
    """A wrong number is mended."""
    page, out = tmp_path / "evidence.md", ROOT / "benchmarks" / "results" / "en_sm.jsonl"
    page.write_text(PAGE.replace("| 84.58 |", "| 99.99 |"), encoding="utf-8")
    languages = (ROOT / "docs" / "languages.md").read_text(encoding="utf-8")
    wrong = languages.replace("| `de_sm` | 2.2 |", "| `de_sm` | 9.9 |")
    page.with_name("languages.md").write_text(wrong, encoding="utf-8")
    run("evidence", "--write-docs", "--page", page, "--out", out)
    assert page.read_text(encoding="utf-8") == PAGE
    assert page.with_name("languages.md").read_text(encoding="utf-8") == languages != wrong


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
