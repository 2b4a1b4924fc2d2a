"""The curves of pretraining runs."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo import viz
from spacy_elmo.viz.diagram import linear_axis, log_axis
from spacy_elmo.viz.training import draw_training, make_curve

SVG = "{http://www.w3.org/2000/svg}"


def losses(steps: range, level: float) -> list[dict[str, Any]]:
    return [{"step": step, "words": 400 * step, "loss": level + step, "lr": 0.1} for step in steps]


def evaluation(step: int, mean: float) -> dict[str, Any]:
    perplexities = {"forward": mean + 1, "backward": mean - 1, "mean": mean}
    return {"step": step, "words": 400 * step, **perplexities}


def write_run(path: Path, entries: Sequence[dict[str, Any]], end: str = "") -> Path:
    path.mkdir()
    text = "".join(json.dumps(entry) + "\n" for entry in entries) + end
    (path / "log.jsonl").write_text(text, encoding="utf-8")
    return path


def drawn(picture: str | None) -> tuple[list[str], list[str], list[int]]:
    """The labels, the titles of marks, and the number of points of each curve."""
    tree = ET.fromstring(str(picture))
    labels = [label.text or "" for label in tree.iter(f"{SVG}text")]
    titles = [title.text or "" for title in tree.iter(f"{SVG}title")][1:]
    lines = [line for line in tree.iter(f"{SVG}polyline") if line.get("stroke-width") == "2"]
    return labels, titles, [len(line.get("points", "").split()) for line in lines]


def test_a_curve_is_in_order_of_the_steps() -> None:
    entries = losses(range(1, 4), 0.0)
    entries.insert(1, {"step": 1, "words": 400, "mean": 3.0, "loss": None})
    entries.append({"step": 4, "words": 1600, "loss": math.nan})
    entries.append({"step": 5, "words": 10**400, "loss": 1.0})
    entries.append({"step": 6, "words": 2400, "loss": 10**400, "forward": -1.0})
    assert make_curve(entries, "loss") == [(400, 1.0, 1), (800, 2.0, 2), (1200, 3.0, 3)]
    assert make_curve(entries, "mean") == [(400, 3.0, 1)]
    assert make_curve(entries, "forward") == []


def test_a_resumed_run_is_one_line() -> None:
    entries = losses(range(1, 8), 0.0) + losses(range(4, 6), 100.0)
    assert [v.value for v in make_curve(entries, "loss")] == [1.0, 2.0, 3.0, 104.0, 105.0]


@pytest.mark.parametrize("means", [[], [250.0, 131.0, 140.0], [20000.0, 300.0, 20.0], [1e9]])
def test_a_run(means: list[float], tmp_path: Path) -> None:
    entries = losses(range(100, 400, 100), 3.0)
    entries += [evaluation(step, mean) for step, mean in zip((100, 200, 300), means, strict=False)]
    entries.append({"step": 300, "model": "model-best", "forward": 1.0, "mean": 1.0})
    run = write_run(tmp_path / "run", entries, end='{"step": 2, "lo')  # it is under way
    page = viz.training(run, page=True, jupyter=False)
    labels, titles, points = drawn(page)
    for label in ("training loss (nats)", "held-out perplexity", "learning rate", "mean"):
        assert labels.count(label) == 1
    assert labels.count("words read, thousands") == 1
    words = labels.index("words read, thousands")
    assert labels[words - 3 : words] == ["0", "50", "100"]
    assert points == [3] + [len(means)] * 3 * (len(means) > 1) + [3]
    # All evaluations but that of the finished model.
    steps = (100, 200, 300)
    assert [title for title in titles if title.startswith("mean")] == [
        f"mean: {mean:,.5g} after {400 * step:,} words, step {step}"
        for mean, step in zip(means, steps, strict=False)
    ]
    if means:
        best = steps[means.index(min(means))]
        assert f"{min(means):,.1f}, after {400 * best:,} words (step {best})" in str(page)
    else:
        assert "has not been evaluated" in str(page)


def test_runs_are_compared(tmp_path: Path) -> None:
    one = [*losses(range(1, 40), 5.0), evaluation(20, 300.0), evaluation(39, 200.0)]
    runs = [write_run(tmp_path / name, one[i:]) for i, name in enumerate(("small", "large"))]
    labels, titles, points = drawn(viz.training(runs, jupyter=False))
    assert [label for label in labels if label in ("small", "large")] == ["small", "large"]
    assert points == [39, 38, 2, 2, 39, 38]
    assert sum(title.startswith("large") for title in titles) > 10
    # Equal names are told apart by the paths, and a log may be given itself.
    (tmp_path / "b").mkdir()
    other = write_run(tmp_path / "b" / "small", one)
    labels, _, _ = drawn(draw_training([runs[0], other / "log.jsonl"]).html())
    names = [label for label in labels if label.startswith("…")]
    assert names[0].endswith("/small") and names[1].endswith("/b/small/log.jsonl")
    assert len(names) == 2


def test_failures(tmp_path: Path) -> None:
    empty = write_run(tmp_path / "empty", [])
    for path, expected in ((tmp_path, "There is no log"), (empty, "has no losses yet")):
        with pytest.raises(ValueError, match=expected):
            viz.training(path)


def test_axes_have_round_ticks() -> None:
    assert linear_axis([3.61, 4.22]).ticks == pytest.approx([3.6, 3.8, 4, 4.2, 4.4])
    assert linear_axis([0.0004, 0.002], n=2, zero=True).ticks == pytest.approx([0, 0.001, 0.002])
    assert linear_axis([5.0, 5.0]).share(5.0) == 0
    assert log_axis([99.0, 174.0]).ticks == [100, 125, 150, 175]
    assert log_axis([20.0, 20000.0]).ticks == [100, 1000, 10000]
    assert not log_axis([100.0, 101.0]).logarithmic and not log_axis([1e9]).logarithmic
    axis = log_axis([10.0, 1000.0])
    assert axis.share(100.0) == pytest.approx(0.5)
