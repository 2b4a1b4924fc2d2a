"""A figure stands in one place, the page of evidence; there it is what the raw results say, and
elsewhere a link leads to the section that contains it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
EVIDENCE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *ROOT.glob("README*.md"), *(ROOT / "docs").glob("*.md"), BENCHMARKS / "README.md",
        ROOT / "project" / "README.md", ROOT / "project" / "configs" / "README.md",
        ROOT / "project" / "six_tasks" / "README.md",
    ]
)  # fmt: skip
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
LINK = re.compile(r"\[([^\]]*)\]\([^)\s]*evidence\.md#([^)\s]+)\)")
TABLE = re.compile(r"^<!-- from: ([^\n]+) -->\n(.*?)^<!-- end -->$", re.M | re.S)


def sections() -> dict[str, str]:
    """Anchor and text of each section of the page."""
    parts = re.split(r"^## (.*)$", EVIDENCE, flags=re.MULTILINE)[1:]
    return {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"): text
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


def table(name: str) -> list[list[str]]:
    """Cells of a table between its markers, without the rows of its head."""
    [text] = re.findall(
        rf"^<!-- table: {name} -->\n(.*?)^<!-- end -->$", EVIDENCE, flags=re.MULTILINE | re.DOTALL
    )
    rows = [line.strip("|").split("|") for line in text.splitlines()[2:]]
    return [[cell.strip().strip("*") for cell in row] for row in rows]


@pytest.mark.parametrize("page", [page for page in PAGES if page != "docs/evidence.md"])
def test_figures_are_those_of_the_evidence(page: str) -> None:
    """Numbers in the text of a link, or in a table that a comment says to be from there."""
    text = (ROOT / page).read_text(encoding="utf-8")
    there = {anchor: set(NUMBER.findall(found)) for anchor, found in sections().items()}
    quoted = [([anchor], content) for content, anchor in LINK.findall(text)]
    quoted += [
        (re.findall(r"evidence\.md#(\S+)", places), rows) for places, rows in TABLE.findall(text)
    ]
    for anchors, content in quoted:
        assert anchors and set(anchors) <= set(there), f"{page}: {anchors}"
        missing = set(NUMBER.findall(content)).difference(*(there[each] for each in anchors))
        assert not missing, f"{page}: {missing} not in {anchors}"


def numbers(values: object) -> Iterator[str]:
    """Those in a document of JSON, as the page writes them."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list):
        for value in values:
            yield from numbers(value)
    elif isinstance(values, (int, float)):
        yield f"{values:,}"


def test_speeds_are_those_of_the_results() -> None:
    """The other tables are compared in tests/benchmarks/test_evidence.py."""
    results = (BENCHMARKS / "results" / "speed.json").read_text(encoding="utf-8")
    known = set(numbers(json.loads(results)))
    rows = table("speed") + table("cost")
    found = [n for _, *cells in rows for n in NUMBER.findall(" ".join(cells))]
    assert len(found) > 25 and not set(found) - known
