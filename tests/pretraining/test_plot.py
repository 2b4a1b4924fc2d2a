from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.pretraining.run.plot import curve, draw, plot_log


def losses(steps: range, level: float) -> list[dict[str, Any]]:
    return [{"step": step, "loss": level + step, "lr": 0.1} for step in steps]


def test_a_curve_is_in_order_of_the_steps() -> None:
    entries = losses(range(1, 4), 0.0)
    entries.insert(1, {"step": 1, "forward": 3.0, "loss": None})
    assert curve(entries, "loss") == ([1, 2, 3], [1.0, 2.0, 3.0])
    assert curve(entries, "forward") == ([1], [3.0])
    assert curve(entries, "mean") == ([], [])


def test_a_resumed_run_is_one_line() -> None:
    entries = losses(range(1, 8), 0.0) + losses(range(4, 6), 100.0)
    assert curve(entries, "loss") == ([1, 2, 3, 4, 5], [1.0, 2.0, 3.0, 104.0, 105.0])


@pytest.mark.parametrize("means", [[], [250.0, 131.0, 140.0], [20000.0, 300.0, 20.0], [1e9]])
def test_what_is_drawn(means: list[float]) -> None:
    Figure = pytest.importorskip("matplotlib.figure").Figure
    entries = losses(range(100, 400, 100), 3.0)
    for step, mean in zip(range(100, 400, 100), means, strict=False):
        entries.append({"step": step, "forward": mean + 1, "backward": mean - 1, "mean": mean})
    entries.append({"step": 300, "model": "model-best", "forward": 1.0, "mean": 1.0})
    figure = Figure(layout="constrained")
    draw(figure, entries)
    figure.canvas.draw()
    of_loss, of_perplexity, of_rate = figure.axes
    assert [panel.get_ylabel() for panel in figure.axes] == [
        "training loss (nats)", "held-out perplexity", "learning rate",
    ]  # fmt: skip
    assert of_rate.get_xlabel() == "step"
    assert len(of_loss.lines) == len(of_rate.lines) == 1
    assert of_loss.lines[0].get_xdata().tolist() == [100, 200, 300]
    assert of_perplexity.get_yscale() == "log"
    drawn = {line.get_label(): list(line.get_ydata()) for line in of_perplexity.lines}
    assert list(drawn) == ["forward", "backward", "mean"]
    assert drawn["mean"] == means  # without that of the finished model
    title = of_perplexity.get_title("right")
    assert title.startswith(f"best mean {min(means):.1f} at step " if means else "")
    for label in of_perplexity.get_yticklabels():
        assert "10^" not in label.get_text()


def test_an_image_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = pytest.importorskip("matplotlib.figure")
    log = tmp_path / "log.jsonl"
    # Of a run that is under way: no evaluation yet, a line half written.
    log.write_text(json.dumps(losses(range(1, 2), 0)[0]) + '\n{"step": 2, "lo', encoding="utf-8")
    plot_log(log, tmp_path / "plot.png")
    before = (tmp_path / "plot.png").read_bytes()

    def fail(self: Any, path: Path, **settings: Any) -> None:
        path.write_bytes(b"half of it")
        raise OSError("No space left on device")

    monkeypatch.setattr(figure.Figure, "savefig", fail)
    with pytest.raises(OSError, match="No space"):
        plot_log(log, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "plot.png"]
