"""The paper's table, on our own sentences."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
import six_tasks
from results import Results, fingerprint

from .conftest import Run

PROJECT = Path(__file__).parents[2] / "project" / "six_tasks"


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(PROJECT))
    from paper_tasks.datasets import LOCAL, SPLITS
    from paper_tasks.sentences import tiny_rows

    for task in ("entailment", "gap"):
        for split in SPLITS:
            path = tmp_path / LOCAL[task].format(split)
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = "\n".join(map(json.dumps, tiny_rows(task, split)))
            path.write_bytes(lzma.compress(rows.encode("utf-8")))
    return tmp_path / "corpora"


def test_a_table_that_is_continued(
    run: Run, corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    few = ("--data", tmp_path, "--corpora", corpora, "--steps", 2, "--seeds", 0)
    arms = ("--arms", "without", "input", "output")
    first = run("six_tasks", out, *few, "--tasks", "entailment", *arms)
    assert [line.split()[:2] for line in first.splitlines()] == [
        ["entailment", "without"], ["entailment", "input"], ["entailment", "output"]
    ]  # fmt: skip
    assert run("six_tasks", out, *few, "--tasks", "entailment", *arms) == ""
    run("six_tasks", out, *few, "--tasks", "gap", "--arms", "without", "--shares", 0.5)
    records = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [len(record["found"]["mixes"]) for record in records] == [0, 1, 1, 0]
    assert [record["weights"] is None for record in records] == [True, False, False, True]
    assert "gap_bias" in records[3]["found"]["test"]
    results, weights = Results(out), fingerprint("en_sm")
    found = six_tasks.measured(results, weights)
    complete = [*six_tasks.lines(found, ("without", "input"))]  # not GAP
    assert len(complete) == 3 and complete[0] == "| | without | input | paper |"
    assert complete[2].endswith("| 88.0 → 88.7, +6% |")
    files = sorted((corpora / "entailment").glob("*.spacy"))
    monkeypatch.syspath_prepend(PROJECT.parents[1] / "benchmarks" / "peers")
    from embed import sentences

    texts = sentences(tmp_path, [], files)
    (tmp_path / "sentences.json").write_text(json.dumps(texts), encoding="utf-8")
    layers = np.random.default_rng(0).normal(size=(4, sum(map(len, texts)), 8))
    np.save(tmp_path / "minilm.npy", layers.astype("float16"))
    minilm = (*few, "--tasks", "entailment", *arms, six_tasks.MINILM)
    with pytest.raises(SystemExit, match="The arm 'MiniLM-L6' needs --embedded"):
        run("six_tasks", out, *minilm)
    later = run("six_tasks", out, *minilm, "--embedded", tmp_path)
    assert later.startswith("entailment MiniLM-L6 0 1.0 ") and later.count("\n") == 1
    with pytest.raises(SystemExit, match="was measured otherwise"):
        run("six_tasks", out, *few[:-4], "--seeds", 0, "--tasks", "entailment")
