"""A drawing of learning curves: scores by the share of the labels."""

from __future__ import annotations

import math
import statistics
from itertools import pairwise

from spacy_elmo.viz.drawing import COLOURS, FAINT, MARKS, Drawing

WIDTH, HEIGHT, LEFT, TOP = 460, 320, 60, 30  # pixels: of the diagram, and beside and above it
LINE = 24  # of the legend
STEPS = (1, 2, 5, 10, 20)  # of the grid, in percent

Points = dict[float, list[float]]  # scores of all seeds by the share in percent


def draw_curves(arms: dict[str, Points]) -> Drawing:
    """A line through the means of each arm, with the range of its seeds; shares on a log scale.

    Raises:
        ValueError: there are fewer than two shares.
    """
    shares = sorted({share for points in arms.values() for share in points})
    if len(shares) < 2:
        raise ValueError("Curves need results of two sizes or more, such as 10% and all.")
    every = [score for points in arms.values() for scores in points.values() for score in scores]
    step = next((s for s in STEPS if (max(every) - min(every)) / s <= 8), STEPS[-1])
    low, high = math.floor(min(every) / step) * step, math.ceil(max(every) / step) * step
    high = max(high, low + step)
    span = math.log(shares[-1] / shares[0])

    def x(share: float) -> float:
        return LEFT + WIDTH * math.log(share / shares[0]) / span

    def y(score: float) -> float:
        return TOP + HEIGHT * (high - score) / (high - low)

    drawing = Drawing(LEFT + WIDTH + 40, TOP + HEIGHT + 50 + LINE * len(arms))
    for score in range(low, high + 1, step):
        drawing.line((LEFT, y(score)), (LEFT + WIDTH, y(score)), stroke="#e4e4e4")
        drawing.label(LEFT - 10, y(score) + 5, str(score), anchor="end", fill=FAINT)
    for share in shares:
        drawing.label(x(share), TOP + HEIGHT + 24, f"{share:g} %", anchor="middle", fill=FAINT)
    for number, (arm, points) in enumerate(arms.items()):
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        means = [(x(share), y(statistics.mean(points[share]))) for share in sorted(points)]
        for start, end in pairwise(means):
            drawing.line(start, end, stroke=colour, width=2.0)
        for share, place in zip(sorted(points), means, strict=True):
            scores = points[share]
            title = f"{arm}, {share:g} %: {statistics.mean(scores):.2f}"
            drawing.line((place[0], y(min(scores))), (place[0], y(max(scores))), stroke=colour)
            drawing.mark(mark, *place, colour, size=5.0, title=title)
        line = TOP + HEIGHT + 54 + LINE * number
        drawing.mark(mark, LEFT + 6, line - 5, colour)
        drawing.label(LEFT + 22, line, arm)
    return drawing
