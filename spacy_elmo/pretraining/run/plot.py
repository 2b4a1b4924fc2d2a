"""The curves of a run, from its log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...bilm.files import atomic_file
from .log import read_log

Curve = tuple[list[int], list[float]]  # steps, and the values at them

KINDS = ("png", "svg", "pdf", "jpg")
WIDTH, HEIGHT, DPI = 3.5, 5.2, 200  # inches: one column of a page of two
LINE = {"linewidth": 0.9, "markersize": 4}
FORWARD, BACKWARD, MEAN = "#0072b2", "#d55e00", "#333333"  # told apart by everyone


def plot_log(log: Path, file: Path) -> None:
    """Draw loss, held-out perplexity and learning rate over the steps.

    Args:
        log: of a run, finished or not.
        file: image to write, whole or not at all; its ending says of which kind.

    Raises:
        ValueError: matplotlib is missing; there is no log, it is damaged, or has nothing to be
            drawn; or the kind of image is unknown.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError(
            "Plotting needs matplotlib. Install it with: pip install 'spacy-elmo[viz]'"
        ) from None
    if not log.is_file():
        raise ValueError(
            f"There is no log '{log}'; give the directory of a run of `python -m spacy elmo "
            f"pretrain`."
        )
    entries = read_log(log)
    if not any("loss" in entry or "forward" in entry for entry in entries):
        raise ValueError(f"The log '{log}' has no losses yet; wait until the run has logged one.")
    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=DPI, layout="constrained")
    kind = file.suffix[1:].lower()
    if kind not in KINDS:
        raise ValueError(
            f"'{file}' has no ending of an image that can be written; known are "
            f"{', '.join('.' + name for name in KINDS)}."
        )
    if not file.parent.is_dir():
        raise ValueError(f"There is no directory '{file.parent}' to write the image to.")
    draw(figure, entries)
    with atomic_file(file) as temporary:
        figure.savefig(temporary, format=kind)


def draw(figure: Any, entries: list[dict[str, Any]]) -> None:
    """Three panels over one axis of steps."""
    of_loss, of_perplexity, of_rate = figure.subplots(3, 1, sharex=True, height_ratios=[3, 3, 2])
    of_loss.plot(*curve(entries, "loss"), color=MEAN, **LINE)
    of_loss.set_ylabel("training loss (nats)")

    # The models at the end have entries of their own, over the whole text instead of a sample.
    during = [entry for entry in entries if "model" not in entry]
    for name, colour in (("forward", FORWARD), ("backward", BACKWARD), ("mean", MEAN)):
        of_perplexity.plot(*curve(during, name), ".-", color=colour, label=name, **LINE)
    of_perplexity.set_ylabel("held-out perplexity")
    of_perplexity.set_yscale("log")
    steps, means = curve(during, "mean")
    _plain_ticks(of_perplexity, means)
    if steps:
        of_perplexity.legend(frameon=False, fontsize="small")
        best = min(range(len(steps)), key=means.__getitem__)
        of_perplexity.set_title(
            f"best mean {means[best]:.1f} at step {steps[best]:,}", fontsize="small", loc="right"
        )

    of_rate.plot(*curve(entries, "lr"), color=MEAN, **LINE)
    of_rate.set_ylabel("learning rate")
    of_rate.set_ylim(bottom=0)
    of_rate.yaxis.set_major_formatter(lambda rate, _: f"{rate:.3g}")
    of_rate.set_xlabel("step")
    of_rate.locator_params(axis="x", nbins=5)
    of_rate.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")
    for panel in (of_loss, of_perplexity, of_rate):
        panel.grid(True, linewidth=0.3, alpha=0.5)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize="small")
    figure.align_ylabels()


def curve(entries: Iterable[dict[str, Any]], name: str) -> Curve:
    """The values of a name, in order of the steps.

    A run that was resumed takes the steps after its last checkpoint again: of a step that the log
    has twice, and of those after it, the later entries count.
    """
    points: list[tuple[int, float]] = []
    for entry in entries:
        if isinstance(entry.get(name), int | float):
            while points and points[-1][0] >= entry["step"]:
                points.pop()
            points.append((entry["step"], entry[name]))
    return [step for step, _ in points], [value for _, value in points]


def _plain_ticks(panel: Any, values: list[float]) -> None:
    """Numbers as 150 rather than 1.5 × 10², also where less than a power of ten is shown."""
    from matplotlib.ticker import LogLocator, NullLocator

    narrow = max(values, default=1.0) < 5 * min(values, default=1.0)
    subs = (1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 7) if narrow else (1, 2, 5)
    panel.yaxis.set_major_locator(LogLocator(subs=subs))
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.4g}")
    panel.yaxis.set_minor_locator(NullLocator())
