"""The curves of pretraining runs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo import viz
from spacy_elmo.viz.training import draw_training, make_curve

pytest.importorskip("matplotlib")


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


def drawn(runs: Sequence[Path]) -> list[dict[str, list[list[float]]]]:
    """The points of the lines of each panel, by the names in the legend."""
    figure = draw_training(runs).figure
    return [{line.get_label(): line.get_xydata().tolist() for line in panel.lines}
            for panel in figure.axes]  # fmt: skip


def test_a_curve_is_in_order_of_the_steps() -> None:
    entries = losses(range(1, 4), 0.0)
    entries.insert(1, {"step": 1, "words": 400, "mean": 3.0, "loss": None})
    entries.append({"step": 4, "words": 1600, "loss": math.nan})
    entries.append({"step": 6, "words": 2400, "loss": math.inf, "mean": 1e300})
    assert make_curve(entries, "loss") == [(400, 1.0, 1), (800, 2.0, 2), (1200, 3.0, 3)]
    assert make_curve(entries, "mean") == [(400, 3.0, 1)]


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
    for label in ("training loss (nats)", "held-out perplexity", "learning rate", "mean"):
        assert str(page).count(f">{label}</text>") == 1
    loss, perplexity, rate = drawn([run])
    steps = (100, 200, 300)
    [points] = loss.values()
    assert points == [[400 * step, 3.0 + step] for step in steps]
    assert [each for _, each in next(iter(rate.values()))] == [0.1] * 3
    # All evaluations but that of the finished model.
    expected = [[400 * step, mean] for step, mean in zip(steps, means, strict=False)]
    assert perplexity["mean"] == expected
    assert perplexity["forward"] == [[words, mean + 1] for words, mean in expected]
    if means:
        best = steps[means.index(min(means))]
        assert f"{min(means):,.1f}, after {400 * best:,} words (step {best})" in str(page)
    else:
        assert "has not been evaluated" in str(page)


def test_runs_are_compared(tmp_path: Path) -> None:
    one = [*losses(range(1, 40), 5.0), evaluation(20, 300.0), evaluation(39, 200.0)]
    runs = [write_run(tmp_path / name, one[i:]) for i, name in enumerate(("small", "large"))]
    loss, perplexity, _ = drawn(runs)
    assert {name: len(points) for name, points in loss.items()} == {"small": 39, "large": 38}
    assert {name: len(points) for name, points in perplexity.items()} == {"small": 2, "large": 2}
    # Names that begin with an underscore are in the legend, too.
    runs.append(write_run(tmp_path / "_old", one))
    [legend] = draw_training(runs).figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["small", "large", "_old"]
    # Equal names are told apart by the paths, and a log may be given itself.
    (tmp_path / "b").mkdir()
    other = write_run(tmp_path / "b" / "small", one)
    names = list(drawn([runs[0], other / "log.jsonl"])[0])
    assert all(name.startswith("…") for name in names) and len(names) == 2
    assert names[0].endswith("/small") and names[1].endswith("/b/small/log.jsonl")


def test_failures(tmp_path: Path) -> None:
    empty = write_run(tmp_path / "empty", [])
    for path, expected in ((tmp_path, "There is no log"), (empty, "has no losses yet")):
        with pytest.raises(ValueError, match=expected):
            viz.training(path)
    with pytest.raises(ValueError, match="no run to draw"):
        viz.training([])
