"""The curves of pretraining runs, from their logs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..pretraining.log import find_log, read_log
from .figure import cut_start, in_style, new_figure, save_figure

MOST_MARKS = 24  # on a line
NAME_CHARACTERS = 24
MOST = 1e30  # can be drawn, also on a logarithmic axis

Entries = list[dict[str, Any]]


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
    if not runs:
        raise ValueError("There is no run to draw: give the directory of one.")
    figure, panels = new_figure("Pretraining", 7, nrows=3, sharex=True, height_ratios=[3, 3, 1.5])
    loss, perplexity, rate = panels
    for run in runs:
        entries = read_run(Path(run))
        name = describe(str(Path(run).resolve()), make_curve(entries, "mean"))
        for panel, kind in ((loss, "loss"), (perplexity, "mean"), (rate, "lr")):
            draw_curve(panel, entries, kind, name)
    if len(runs) == 1:
        for kind in ("forward", "backward"):
            draw_curve(perplexity, entries, kind, kind)
    for panel in panels:
        panel.grid(True, axis="y")
    loss.set_title("training loss (nats)")
    perplexity.set(title="held-out perplexity", yscale="log")
    perplexity.yaxis.set_major_formatter(LogFormatter())
    perplexity.yaxis.set_minor_formatter(LogFormatter())  # where there is room
    rate.set(title="learning rate", xlabel="words read", xlim=(0, None))
    rate.xaxis.set_major_formatter(EngFormatter(sep=" "))
    figure.legend(handles=perplexity.get_lines(), loc="outside lower left", frameon=False)
    return save_figure(figure, output)


def describe(name: str, means: Entries) -> str:
    """The best perplexity of a run, and the end of its path, which tells runs apart."""
    name = cut_start(name, NAME_CHARACTERS)
    if not means:
        return f"no perplexity yet: {name}"
    best = min(means, key=lambda entry: entry["mean"])
    return f"best {best['mean']:,.1f} after {best['words']:,} words: {name}"


def draw_curve(panel: Any, entries: Entries, kind: str, label: str) -> None:
    curve = make_curve(entries, kind)
    words, values = [entry["words"] for entry in curve], [entry[kind] for entry in curve]
    panel.plot(words, values, label=label, markevery=math.ceil(len(curve) / MOST_MARKS) or 1)


def read_run(path: Path) -> Entries:
    """The entries of a run's log.

    Raises:
        ValueError: see `draw_training`.
    """
    log = find_log(path)
    if not log.is_file():
        raise ValueError(
            f"There is no log '{log}'; give the directory of a run of `python -m spacy elmo "
            f"pretrain`."
        )
    entries = read_log(log)
    if not any(make_curve(entries, kind) for kind in ("loss", "mean")):
        raise ValueError(f"The log '{log}' has no losses yet; wait until the run has logged one.")
    return entries


def make_curve(entries: Iterable[dict[str, Any]], kind: str) -> Entries:
    """The entries with a value of a kind, in the order of the steps, without those that cannot be
    drawn.

    A resumed run repeats the steps after its last checkpoint: from a step that the log has twice,
    the later entries count. The final models have entries of their own, without words, because they
    are evaluated on the whole text instead of a sample.
    """
    curve: Entries = []
    for entry in entries:
        value = entry.get(kind)
        if "words" in entry and isinstance(value, int | float) and 0 <= value <= MOST:
            while curve and curve[-1]["step"] >= entry["step"]:
                curve.pop()
            curve.append(entry)
    return curve
