"""The curves of pretraining runs, from their logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..pretraining.log import read_log
from .figure import in_style, new_figure, save_figure

NAME_CHARACTERS = 40
MOST = 1e30  # can be drawn, also on a logarithmic axis
PANELS = {"loss": "training loss (nats)", "mean": "held-out perplexity", "lr": "learning rate"}


@in_style()
def draw_training(
    runs: str | Path | Sequence[str | Path], *, output: str | Path | None = None
) -> Any:
    """Draw loss, held-out perplexity and learning rate of pretraining runs, by the words read.

    Args:
        runs: the directory of a run of ``elmo pretrain``, or its log, or several to compare; they
            need not have finished.
        output: a file to write, too.

    Returns:
        A figure of matplotlib.

    Raises:
        ValueError: there is no log, or it is damaged or has nothing to draw.
    """
    from matplotlib.ticker import EngFormatter, LogFormatter

    runs = [runs] if isinstance(runs, (str, Path)) else runs
    figure, panels = new_figure("Pretraining", 7, nrows=3, sharex=True, height_ratios=[3, 3, 1.5])
    for run in runs:
        curves = read_curves(Path(run))
        best = min((value for _, value in curves["mean"]), default=float("nan"))
        name = f"best {best:,.1f}: {str(Path(run).resolve())[-NAME_CHARACTERS:]}"
        for panel, curve in zip(panels, curves.values(), strict=True):
            words, values = zip(*curve, strict=True) if curve else ((), ())
            panel.plot(words, values, label=name, markevery=0.1)
    for panel, title in zip(panels, PANELS.values(), strict=True):
        panel.set_title(title)
        panel.grid(True, axis="y")
    _, perplexity, rate = panels
    perplexity.set_yscale("log")
    perplexity.yaxis.set_major_formatter(LogFormatter())
    perplexity.yaxis.set_minor_formatter(LogFormatter())  # where there is room
    rate.set(xlabel="words read", xlim=(0, None))
    rate.xaxis.set_major_formatter(EngFormatter(sep=" "))
    figure.legend(handles=perplexity.get_lines(), loc="outside lower left", frameon=False)
    return save_figure(figure, output)


def read_curves(run: Path) -> dict[str, list[tuple[int, float]]]:
    """What can be drawn of a run's log, by kind: words read, and values.

    The final models' entries have no words: they are evaluated on the whole text, not on a sample.

    Raises:
        ValueError: see `draw_training`.
    """
    curves: dict[str, list[tuple[int, float]]] = {kind: [] for kind in PANELS}
    for entry in read_log(run):
        for kind, curve in curves.items():
            value = entry.get(kind)
            if "words" in entry and value is not None and 0 <= value <= MOST:
                curve.append((entry["words"], value))
    if not curves["loss"] + curves["mean"]:
        raise ValueError(
            f"There are no losses in a log at '{run}'. Give the directory of a run of `python -m "
            f"spacy elmo pretrain`, when it has logged some."
        )
    return curves
