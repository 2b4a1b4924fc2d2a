"""benchmarks/quality/perplexities.py at its smallest."""

from __future__ import annotations

from pathlib import Path

from spacy_elmo.lm.head import load_head

from .conftest import Run


def rows(table: str) -> dict[str, list[str]]:
    """The cells of a Markdown table by those of its first column."""
    found = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {name: cells for name, *cells in found[1:]}


def test_table(run: Run, data: Path) -> None:
    out = run("perplexities", data, "--words", 100, "--train-words", 0)
    found = rows(out)
    assert list(found) == ["enwiki", "masc", "chat"]  # and no Korean
    for cells in found.values():
        assert int(cells[0]) >= 100
        unigrams, trigrams, forward, backward, mean = map(float, cells[2:])
        assert trigrams < unigrams / 2  # they have counted this very text
        assert abs(mean - (forward * backward) ** 0.5) < 0.1
    known = set((data / "eval_vocab.txt").read_text(encoding="utf-8").split())
    _, words = load_head("en_sm")
    assert f"en_sm, {len(known & set(words.words)):,} words" in out


def test_bounds(run: Run, data: Path) -> None:
    out = run("perplexities", data, "--words", 10, "--train-words", 20, "--registers", "chat")
    assert list(rows(out)) == ["chat"]
    assert int(rows(out)["chat"][0]) < 60
