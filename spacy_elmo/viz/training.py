"""The curves of pretraining runs, from their logs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..pretraining.log import LOG, find_log, read_log
from .figure import COLOURS, MARKERS, cut_start, in_style, new_figure
from .picture import Picture

MOST_MARKS = 24  # on a line
NAME_CHARACTERS = 34
MOST = 1e30  # can be drawn, also on a logarithmic axis
KINDS = ("loss", "lr", "forward", "backward", "mean")


class Value(NamedTuple):
    """One entry of a log: what it has measured after how many words and steps."""

    words: int
    value: float
    step: int


Curves = dict[str, list[Value]]  # of a run by `KINDS`, of several runs by their names


@in_style()
def draw_training(paths: Sequence[Path]) -> Picture:
    """The picture of loss, held-out perplexity and learning rate, by the words read.

    Args:
        paths: directories of runs, or their logs; the runs need not have finished.

    Raises:
        ValueError: there is no log, or it is damaged or has nothing to draw.
    """
    from matplotlib.ticker import EngFormatter, NullFormatter, StrMethodFormatter

    if not paths:
        raise ValueError("There is no run to draw: give the directory of one.")
    runs = [read_run(path) for path in paths]
    logs = [find_log(path).resolve() for path in paths]
    names = [log.parent.name if log.name == LOG else log.stem for log in logs]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    figure, (loss, perplexity, rate) = new_figure(
        6.6, nrows=3, sharex=True, height_ratios=[3, 3, 1.5]
    )
    if len(runs) == 1:  # each direction has a line
        [curves] = runs
        draw_curves(loss, {"": curves["loss"]})
        draw_curves(perplexity, {kind: curves[kind] for kind in ("forward", "backward", "mean")})
        draw_curves(rate, {"": curves["lr"]})
    else:
        for panel, kind in ((loss, "loss"), (perplexity, "mean"), (rate, "lr")):
            curves = {name: run[kind] for name, run in zip(names, runs, strict=True)}
            draw_curves(panel, curves)
    loss.set_title("training loss (nats)")
    perplexity.set(title="held-out perplexity", yscale="log")
    low, high = perplexity.get_ylim()
    perplexity.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    within = high < 8 * low  # there is room for labels between the powers of ten
    perplexity.yaxis.set_minor_formatter("{x:,.0f}" if within else NullFormatter())
    rate.set(title="learning rate", xlabel="words read", xlim=(0, None))
    rate.xaxis.set_major_formatter(EngFormatter(sep=" "))
    for panel in (loss, perplexity, rate):
        panel.grid(True, axis="y")
    lines = perplexity.get_lines()
    labels = ["-"] * len(lines)
    legend = figure.legend(lines, labels, loc="outside lower left", frameon=False)
    for text, line in zip(legend.get_texts(), lines, strict=True):
        text.set_text(line.get_label())  # given above, those that begin with _ are left out
    return Picture("Pretraining", " ".join(map(describe, names, runs)), figure)


def draw_curves(panel: Any, curves: Curves) -> None:
    """A line for each curve, with its own colour and marks if it has a name."""
    for number, (name, curve) in enumerate(curves.items()):
        panel.plot(
            [v.words for v in curve], [v.value for v in curve],
            label=cut_start(name, NAME_CHARACTERS),  # the ends of paths differ
            color=COLOURS[(0, 3, 6, 1, 2, 4, 5)[number % 7]],
            marker=MARKERS[number % len(MARKERS)] if name else None, markersize=5,
            markevery=math.ceil(max(len(curve), 1) / MOST_MARKS),
        )  # fmt: skip


def describe(name: str, run: Curves) -> str:
    """The best perplexity of a run, in a sentence."""
    if not run["mean"]:
        return f"{name} has not been evaluated on held-out text."
    best = min(run["mean"], key=lambda v: v.value)
    return (
        f"{name}: the best mean perplexity is {best.value:,.1f}, after {best.words:,} words "
        f"(step {best.step:,})."
    )


def read_run(path: Path) -> Curves:
    """The curves of a run.

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
    curves = {kind: make_curve(entries, kind) for kind in KINDS}
    if not any(curves.values()):
        raise ValueError(f"The log '{log}' has no losses yet; wait until the run has logged one.")
    return curves


def make_curve(entries: Iterable[dict[str, Any]], kind: str) -> list[Value]:
    """The values of a kind, in the order of the steps; those that cannot be drawn are left out.

    A resumed run repeats the steps after its last checkpoint: from a step that the log has twice,
    the later entries count. The final models have entries of their own, without words, because they
    are evaluated on the whole text instead of a sample.
    """
    curve: list[Value] = []
    for entry in entries:
        value = entry.get(kind)
        if "words" in entry and isinstance(value, int | float) and 0 <= value <= MOST:
            while curve and curve[-1].step >= entry["step"]:
                curve.pop()
            curve.append(Value(entry["words"], value, entry["step"]))
    return curve
