"""Learning curves: scores by the share of the labels."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from spacy_elmo.viz.figure import COLOURS, MARKERS, in_style, new_figure, save_figure

Points = dict[float, list[float]]  # scores of all seeds by the share in percent


@in_style()
def draw_curves(arms: dict[str, Points], title: str = "score", output: Path | None = None) -> Any:
    """A line through the means of each arm, with the range of its seeds; shares on a log scale.

    Raises:
        ValueError: there are fewer than two shares.
    """
    shares = sorted({share for points in arms.values() for share in points})
    if len(shares) < 2:
        raise ValueError("Curves need results of two sizes or more, such as 10% and all.")
    figure, axes = new_figure(title, 4.2 + 0.26 * len(arms))
    for number, (arm, points) in enumerate(arms.items()):
        own = sorted(points)
        means = [statistics.mean(points[share]) for share in own]
        ranges = [
            [mean - min(points[share]) for share, mean in zip(own, means, strict=True)],
            [max(points[share]) - mean for share, mean in zip(own, means, strict=True)],
        ]
        axes.errorbar(
            own, means, ranges, color=COLOURS[number % len(COLOURS)],
            marker=MARKERS[number % len(MARKERS)], label=arm,
        )  # fmt: skip
    axes.set(xscale="log", xlabel="share of the labels in percent")
    axes.set_xticks(shares, [f"{share:g}" for share in shares])
    axes.minorticks_off()
    axes.grid(True)
    figure.legend(loc="outside lower left", frameon=False)
    return save_figure(figure, output)
