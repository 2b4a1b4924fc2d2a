"""The curves of a run, from its log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...bilm.files import atomic_file
from ...bilm.optional_imports import import_extra
from .log import read_log

KINDS = ("png", "svg", "pdf", "jpg")
SIZE, DPI = (3.5, 5.2), 200  # inches: one column of a two-column page
LINE = {"linewidth": 0.9, "markersize": 4}
COLOURS = {"forward": "#0072b2", "backward": "#d55e00", "mean": "#333333"}  # for the colour-blind


def plot_log(log: Path, file: Path) -> None:
    """Draw loss, held-out perplexity and learning rate over the steps.

    Args:
        log: of a run, finished or not.
        file: image to write, whole or not at all; its suffix decides the format.

    Raises:
        ValueError: matplotlib is missing; there is no log, it is damaged, or has nothing to
            draw; or the format is unknown.
    """
    figures = import_extra("matplotlib.figure", "viz", "plotting needs matplotlib", str(file))
    if not log.is_file():
        raise ValueError(
            f"There is no log '{log}'; give the directory of a run of `python -m spacy elmo "
            f"pretrain`."
        )
    entries = read_log(log)
    if not any("loss" in entry or "forward" in entry for entry in entries):
        raise ValueError(f"The log '{log}' has no losses yet; wait until the run has logged one.")
    kind = file.suffix[1:].lower()
    if kind not in KINDS:
        known = ", ".join(f".{name}" for name in KINDS)
        raise ValueError(f"'{file}' has no suffix of an image format; known are {known}.")
    if not file.parent.is_dir():
        raise ValueError(f"There is no directory '{file.parent}' to write the image to.")
    figure = figures.Figure(figsize=SIZE, dpi=DPI, layout="constrained")
    draw(figure, entries)
    with atomic_file(file) as temporary:
        figure.savefig(temporary, format=kind)


def draw(figure: Any, entries: list[dict[str, Any]]) -> None:
    """Three panels over one axis of steps."""
    panels = figure.subplots(3, 1, sharex=True, height_ratios=[3, 3, 2])
    labels = ("training loss (nats)", "held-out perplexity", "learning rate")
    for panel, label in zip(panels, labels, strict=True):
        panel.set_ylabel(label)
        panel.grid(True, linewidth=0.3, alpha=0.5)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize="small")
    loss, perplexity, rate = panels
    loss.plot(*curve(entries, "loss"), color=COLOURS["mean"], **LINE)

    # The final models have entries of their own, on the whole text instead of a sample.
    during = [entry for entry in entries if "model" not in entry]
    for name, colour in COLOURS.items():
        perplexity.plot(*curve(during, name), ".-", color=colour, label=name, **LINE)
    perplexity.set_yscale("log")
    steps, means = curve(during, "mean")
    _plain_ticks(perplexity, means)
    if steps:
        perplexity.legend(frameon=False, fontsize="small")
        best, step = min(zip(means, steps, strict=True))
        title = f"best mean {best:.1f} at step {step:,}"
        perplexity.set_title(title, fontsize="small", loc="right")

    rate.plot(*curve(entries, "lr"), color=COLOURS["mean"], **LINE)
    rate.set_ylim(bottom=0)
    rate.yaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
    rate.set_xlabel("step")
    rate.locator_params(axis="x", nbins=5)
    rate.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    figure.align_ylabels()


def curve(entries: Iterable[dict[str, Any]], name: str) -> tuple[list[int], list[float]]:
    """The steps and values of a name, in the order of the steps.

    A resumed run repeats the steps after its last checkpoint: from a step that the log has twice,
    the later entries count.
    """
    points: list[tuple[int, float]] = []
    for entry in entries:
        if isinstance(entry.get(name), int | float):
            while points and points[-1][0] >= entry["step"]:
                points.pop()
            points.append((entry["step"], entry[name]))
    return [step for step, _ in points], [value for _, value in points]


def _plain_ticks(panel: Any, values: list[float]) -> None:
    """Labels as 150 rather than 1.5 × 10², also on less than a power of ten."""
    from matplotlib.ticker import LogLocator, NullLocator

    narrow = max(values, default=1.0) < 5 * min(values, default=1.0)
    subs = (1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 7) if narrow else (1, 2, 5)
    panel.yaxis.set_major_locator(LogLocator(subs=subs))
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.4g}")
    panel.yaxis.set_minor_locator(NullLocator())
