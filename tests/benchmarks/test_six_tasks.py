"""The paper's table, on our own sentences."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import six_tasks
from results import Results, fingerprint

from .conftest import Run

PROJECT = Path(__file__).parents[2] / "project" / "six_tasks"


def test_a_table_that_is_continued(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, corpora = tmp_path / "out.jsonl", tmp_path / "corpora"
    few = ("--data", PROJECT / "tiny", "--corpora", corpora, "--steps", 2, "--seeds", 0)
    arms = ("--arms", "without", "input", "output")
    first = run("six_tasks", out, *few, "--tasks", "entailment", *arms)
    assert [line.split()[:2] for line in first.splitlines()] == [
        ["entailment", "without"], ["entailment", "input"], ["entailment", "output"]
    ]  # fmt: skip
    assert run("six_tasks", out, *few, "--tasks", "entailment", *arms) == first
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
    later = run("six_tasks", out, *minilm, "--embedded", tmp_path)
    assert later.startswith(first) and "\nentailment MiniLM-L6 0 1.0 " in later
