"""Draws the curves of pretraining runs, from their logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..pretraining.log import read_log
from .figure import check_output, in_style, new_figure, save_figure

NAME_CHARACTERS = 40
MOST = 1e30  # the largest value that a logarithmic axis can have
Curves = dict[str, list[tuple[int, float]]]  # by kind, the points: words read, and a value
PANELS = {"loss": "training loss (nats)", "mean": "held-out perplexity", "lr": "learning rate"}


def draw_training(
    runs: str | Path | Sequence[str | Path], *, output: str | Path | None = None
) -> Any:
    """Draw loss, held-out perplexity and learning rate of pretraining runs over the words read.

    Args:
        runs: the directory or the log of a run of ``elmo pretrain``, or several to compare. Runs
            need not have finished.
        output: the file to write.

    Returns:
        A figure of matplotlib.

    Raises:
        ValueError: there is no log, or it is damaged or has nothing to draw.
    """
    check_output(output)
    paths = [Path(run) for run in ([runs] if isinstance(runs, (str, Path)) else runs)]
    logs = [(path, read_curves(path)) for path in paths]  # an error before matplotlib is imported
    with in_style():
        from matplotlib.ticker import EngFormatter, LogFormatter

        figure, panels = new_figure("Pretraining", 7, nrows=3, sharex=True, height_ratios=[6, 6, 3])
        for run, curves in logs:
            best = min((value for _, value in curves["mean"]), default=float("nan"))
            name = f"best {best:,.1f}: {str(run.resolve())[-NAME_CHARACTERS:]}"
            for panel, curve in zip(panels, curves.values(), strict=True):
                points = np.reshape(curve, (-1, 2)).T
                # Without clipping: the first point is on the axis, and would lose one half.
                panel.plot(*points, label=name, markevery=0.1, clip_on=False, in_layout=False)
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


def read_curves(run: Path) -> Curves:
    """Read the curves from a log, without values that cannot be drawn.

    The entries of the finished models are left out: they are for another part of the text.

    Raises:
        ValueError: see `draw_training`.
    """
    entries, curves = [entry for entry in read_log(run) if "words" in entry], {}
    for kind in PANELS:
        points = [(entry["words"], entry[kind]) for entry in entries if entry.get(kind) is not None]
        curves[kind] = [(words, value) for words, value in points if 0 <= value <= MOST]
    if not curves["loss"] + curves["mean"]:
        raise ValueError(f"There are no losses in a log at '{run}'. Give the directory of a run.")
    return curves
