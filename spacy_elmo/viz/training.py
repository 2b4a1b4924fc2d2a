"""The curves of pretraining runs, from their logs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..pretraining.run.log import LOG, find_log, read_log
from .diagram import Panel, linear_axis, log_axis
from .drawing import COLOURS, INK, MARKS, PAPER, Drawing, shorten_start
from .picture import Picture

WIDTH, LEFT, RIGHT = 460, 70, 20
GAP, LINE = 46, 28  # pixels: above each panel, and of a line of the legend
PANELS = (("training loss (nats)", 170), ("held-out perplexity", 190), ("learning rate", 90))
MOST_MARKS = 24  # on a line; the best evaluation always has one
NAME_CHARACTERS = 30
LEAST, MOST = 1e-30, 1e30  # of what can be drawn, also on a logarithmic axis
UNITS = ((2e9, 1e9, "billions"), (2e6, 1e6, "millions"), (2e3, 1e3, "thousands"))


class Value(NamedTuple):
    """One entry of a log: what it has measured after how many words and steps."""

    words: int
    value: float
    step: int


class Run(NamedTuple):
    """The curves of a run: by ``loss``, ``lr``, ``forward``, ``backward`` or ``mean``."""

    name: str
    curves: dict[str, list[Value]]


def draw_training(paths: Sequence[Path]) -> Picture:
    """The picture of loss, held-out perplexity and learning rate, by the words read.

    Args:
        paths: directories of runs, or their logs; the runs need not have finished.

    Raises:
        ValueError: there is no log, or it is damaged or has nothing to draw.
    """
    runs = [read_run(path) for path in paths]
    if len({run.name for run in runs}) < len(runs):
        runs = [run._replace(name=str(path)) for run, path in zip(runs, paths, strict=True)]
    if len(runs) == 1:  # each direction has a line
        names = ["forward", "backward", "mean"]
        perplexity = {name: runs[0].curves[name] for name in names}
        lines = [{"": runs[0].curves["loss"]}, perplexity, {"": runs[0].curves["lr"]}]
    else:
        names = [run.name for run in runs]
        lines = [{run.name: run.curves[kind] for run in runs} for kind in ("loss", "mean", "lr")]
    looks = {name: (COLOURS[(0, 3, 6, 1, 2, 4, 5)[i % 7]], MARKS[i % len(MARKS)])
             for i, name in enumerate(names)}  # fmt: skip
    words = [v.words for each in lines for curve in each.values() for v in curve]
    x = linear_axis(words, n=4, zero=True).until(max(words))
    height = sum(GAP + height for _, height in PANELS) + 60 + LINE * len(names)
    drawing = Drawing(WIDTH, height)
    y = 0.0
    for (title, height), curves in zip(PANELS, lines, strict=True):
        values = [v.value for curve in curves.values() for v in curve] or [1.0]
        axis = (
            log_axis(values) if title == PANELS[1][0]
            else linear_axis(values, n=4 if height > 100 else 2, zero=title == PANELS[2][0])
        )  # fmt: skip
        panel = Panel(LEFT, y + GAP, WIDTH - LEFT - RIGHT, height, x, axis)
        panel.draw_grid(drawing, title)
        for name, curve in curves.items():
            draw_curve(drawing, panel, curve, name, looks.get(name))
        y += GAP + height
    unit, title = next(((u, t) for least, u, t in UNITS if x.high >= least), (1.0, ""))
    panel.draw_x(drawing, f"words read{', ' * bool(title)}{title}", unit)
    for number, name in enumerate(names):
        line = y + 60 + LINE * (number + 0.5)
        colour, mark = looks[name]
        drawing.mark(mark, LEFT + 6, line - 5, colour, size=7.0)
        drawing.label(LEFT + 22, line, shorten_start(name, NAME_CHARACTERS))  # ends of paths differ
    return Picture("Pretraining", " ".join(map(describe, runs)), drawing)


def draw_curve(
    drawing: Drawing, panel: Panel, curve: Sequence[Value], name: str, look: tuple[str, str] | None
) -> None:
    """A line; if its name has a colour and a mark, with marks that show their values."""
    colour, mark = look or (INK, "")
    panel.draw_line(drawing, [(v.words, v.value) for v in curve], colour)
    if not mark or not curve:
        return
    chosen = {*curve[:: math.ceil(len(curve) / MOST_MARKS)], min(curve, key=lambda v: v.value)}
    for v in sorted(chosen):
        title = f"{name}: {v.value:,.5g} after {v.words:,} words, step {v.step:,}"
        drawing.mark(
            mark, *panel.place(v.words, v.value), colour, size=4.0, title=title,
            stroke=PAPER, stroke_width=0.6,
        )  # fmt: skip


def describe(run: Run) -> str:
    """The best perplexity of a run, in a sentence."""
    if not run.curves["mean"]:
        return f"{run.name} has not been evaluated on held-out text."
    best = min(run.curves["mean"], key=lambda v: v.value)
    return (
        f"{run.name}: the best mean perplexity is {best.value:,.1f}, after {best.words:,} words "
        f"(step {best.step:,})."
    )


def read_run(path: Path) -> Run:
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
    # The final models have entries of their own, on the whole text instead of a sample.
    entries = [entry for entry in read_log(log) if "model" not in entry]
    kinds = ("loss", "lr", "forward", "backward", "mean")
    curves = {kind: list(make_curve(entries, kind)) for kind in kinds}
    if not any(curves.values()):
        raise ValueError(f"The log '{log}' has no losses yet; wait until the run has logged one.")
    return Run(log.resolve().parent.name if log.name == LOG else log.stem, curves)


def make_curve(entries: Iterable[dict[str, Any]], kind: str) -> list[Value]:
    """The values of a kind, in the order of the steps; those that cannot be drawn are left out.

    A resumed run repeats the steps after its last checkpoint: from a step that the log has twice,
    the later entries count.
    """
    curve: list[Value] = []
    for entry in entries:
        value, words = entry.get(kind), entry.get("words")
        if not (isinstance(value, int | float) and isinstance(words, int)):
            continue
        if 0 <= words <= MOST and (0 if kind == "lr" else LEAST) <= value <= MOST:
            while curve and curve[-1].step >= entry["step"]:
                curve.pop()
            curve.append(Value(words, value, entry["step"]))
    return curve
