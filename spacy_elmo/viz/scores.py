"""Draws the scores of several models: bars, and learning curves."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from typing import Any

from .figure import COLOURS, MARKERS, in_style, new_figure, save_figure

BAR = 0.8  # of the distance between two scores, for all bars of a score

Bars = dict[str, dict[str, list[float]]]  # by score and model, the values of all seeds
Points = dict[float, list[float]]  # by size, the values of all seeds


@in_style()
def draw_bars(scores: Bars, title: str = "Scores", output: str | Path | None = None) -> Any:
    """Draw a group of bars for each score: a bar for each model, with the range of its seeds.

    Args:
        scores: in percent; each score has the same models.
        title: the title of the figure.
        output: the file to write.
    """
    models = list(next(iter(scores.values())))
    columns = len(models) if sum(map(len, models)) < 30 else 1  # in the legend
    figure, axes = new_figure(title, 1.2 + (0.4 * len(scores) + 0.26 / columns) * len(models))
    width = BAR / len(models)
    for number, model in enumerate(models):
        places = [place + width * (number - (len(models) - 1) / 2) for place in range(len(scores))]
        means, ranges = means_and_ranges([values[model] for values in scores.values()])
        colour, errors = COLOURS[(number + 4) % 5], ranges if any(map(any, ranges)) else None
        bars = axes.barh(places, means, 0.95 * width, xerr=errors, label=model, color=colour)
        axes.bar_label(bars, fmt="%.1f", padding=4)
    axes.set_yticks(range(len(scores)), list(scores))
    axes.set(xlim=(0, 110), xticks=[], xlabel="lines: range of the seeds" if errors else "")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.invert_yaxis()
    figure.legend(loc="outside lower left", frameon=False, ncols=columns)
    return save_figure(figure, output)


@in_style()
def draw_curves(
    panels: dict[str, dict[str, Points]],
    title: str = "Scores",
    x: str = "share of the labels in percent",
    output: str | Path | None = None,
) -> Any:
    """Draw learning curves: a line through the means of each model, with the range of its seeds.
    Sizes are on a logarithmic scale.

    Args:
        panels: the points by score and model.
        title: the title of the figure.
        x: the label of the sizes.
        output: the file to write.

    Raises:
        ValueError: there are fewer than two sizes.
    """
    sizes = sorted({size for p in panels.values() for points in p.values() for size in points})
    if len(sizes) < 2:
        raise ValueError("Curves need results of two sizes or more, such as 10% and all.")
    models = list(next(iter(panels.values())))
    height = 0.8 + 0.26 * len(models) + (3.4 if len(panels) == 1 else 2.2 * len(panels))
    figure, grid = new_figure(title, height, nrows=len(panels), sharex=True, squeeze=False)
    for axes, (name, panel) in zip(grid[:, 0], panels.items(), strict=True):
        for number, (model, points) in enumerate(panel.items()):
            xs = sorted(points)
            means, ranges = means_and_ranges([points[size] for size in xs])
            axes.errorbar(
                xs, means, ranges, color=COLOURS[number % len(COLOURS)],
                marker=MARKERS[number % len(MARKERS)], label=model,
            )  # fmt: skip
        axes.set(xscale="log", xlim=(sizes[0] / 1.2, sizes[-1] * 1.2), ylabel=name)
        axes.set_xticks(sizes, [f"{size:,g}" for size in sizes])
        axes.minorticks_off()
        axes.grid(True)
    grid[-1, 0].set_xlabel(x)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower left", frameon=False)
    return save_figure(figure, output)


def means_and_ranges(scores: list[list[float]]) -> tuple[list[float], list[list[float]]]:
    """The mean of each list, and the distances from it to the smallest and the largest value."""
    means = [mean(values) for values in scores]
    below = [m - min(values) for m, values in zip(means, scores, strict=True)]
    above = [max(values) - m for m, values in zip(means, scores, strict=True)]
    return means, [below, above]
