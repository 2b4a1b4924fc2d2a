"""The curves of pretraining runs, and ``elmo plot-training``."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo import viz

from ..cli.helpers import fail, succeed

pytest.importorskip("matplotlib")


def losses(steps: range, level: float) -> list[dict[str, Any]]:
    return [{"step": step, "words": 400 * step, "loss": level + step, "lr": 0.1} for step in steps]


def write_run(path: Path, entries: Sequence[dict[str, Any]], end: str = "") -> Path:
    path.mkdir(parents=True)
    text = "".join(json.dumps(entry) + "\n" for entry in entries) + end
    (path / "log.jsonl").write_text(text, encoding="utf-8")
    return path


def drawn(runs: Path | Sequence[Path]) -> list[dict[str, list[list[float]]]]:
    """The points of the lines of each panel, by the names in the legend."""
    return [{line.get_label(): line.get_xydata().tolist() for line in panel.lines}
            for panel in viz.draw_training(runs).axes]  # fmt: skip


def test_what_cannot_be_drawn_is_left_out(tmp_path: Path) -> None:
    entries = losses(range(1, 4), 0.0)
    entries.insert(1, {"step": 1, "words": 400, "mean": 3.0, "loss": None})
    entries.append({"step": 8, "words": 3200, "loss": math.nan})
    entries.append({"step": 9, "words": 3600, "loss": math.inf, "mean": 1e300})
    [[loss], [perplexity], _] = map(dict.values, drawn(write_run(tmp_path / "run", entries)))
    assert [value for _, value in loss] == [1.0, 2.0, 3.0] and perplexity == [[400, 3.0]]


@pytest.mark.parametrize("means", [[], [250.0, 131.0, 140.0]])
def test_a_run(means: list[float], tmp_path: Path) -> None:
    steps = (100, 200, 300)
    entries = [
        {"words": 400 * step, "mean": mean} for step, mean in zip(steps, means, strict=False)
    ]
    entries += [*losses(range(100, 400, 100), 3.0), {"model": "model-best", "mean": 1.0}]
    entries = [{"step": 1, **entry} for entry in entries]
    run = write_run(tmp_path / "run", entries, end='{"step": 2, "lo')  # it is under way
    page = viz.draw_training(str(run))._repr_html_()
    for label in ("training loss (nats)", "held-out perplexity", "learning rate"):
        assert page.count(f">{label}</text>") == 1
    [[(name, loss)], [(_, perplexity)], [(_, rate)]] = map(dict.items, drawn(run))
    assert loss == [[400 * step, 3.0 + step] for step in steps]
    assert [each for _, each in rate] == [0.1] * 3
    # All evaluations but that of the finished model.
    assert perplexity == [[400 * step, mean] for step, mean in zip(steps, means, strict=False)]
    assert name.startswith(f"best {min(means, default=math.nan):,.1f}: ") and name.endswith("/run")


def test_runs_are_compared(tmp_path: Path) -> None:
    """By the ends of their paths; those of equal names, and logs themselves, too."""
    entries = losses(range(1, 40), 5.0)
    ends = ("/small", "/_large", "/b/small/log.jsonl")
    for i, end in enumerate(ends):
        write_run(tmp_path / end[1:].removesuffix("/log.jsonl"), entries[i:])
    loss, *_ = drawn([tmp_path / end[1:] for end in ends])
    assert [len(points) for points in loss.values()] == [39, 38, 37]
    assert all(name.endswith(end) for name, end in zip(loss, ends, strict=True))


def test_plot_training(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", losses(range(1, 4), 0.0))
    empty = write_run(tmp_path / "empty", [])
    said = succeed("plot-training", run, run, "-o", tmp_path / "two.svg")
    assert "Drew the training" in said
    assert '"output"' in succeed("plot-training", run, "--json", "-o", tmp_path / "one.PNG")
    assert "no losses in a log" in fail("plot-training", empty)
    assert "held-out perplexity" in (tmp_path / "two.svg").read_text(encoding="utf-8")
    assert (tmp_path / "one.PNG").read_bytes().startswith(b"\x89PNG")
