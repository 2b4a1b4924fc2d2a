"""A drawing of learning curves: scores by the share of the labels."""

from __future__ import annotations

import statistics

from spacy_elmo.viz.diagram import Axis, Panel, linear_axis
from spacy_elmo.viz.drawing import COLOURS, MARKS, Drawing

WIDTH, HEIGHT, LEFT, TOP = 460, 320, 60, 36  # pixels: of the diagram, and beside and above it
LINE = 24  # of the legend

Points = dict[float, list[float]]  # scores of all seeds by the share in percent


def draw_curves(arms: dict[str, Points], title: str = "score") -> Drawing:
    """A line through the means of each arm, with the range of its seeds; shares on a log scale.

    Raises:
        ValueError: there are fewer than two shares.
    """
    shares = sorted({share for points in arms.values() for share in points})
    if len(shares) < 2:
        raise ValueError("Curves need results of two sizes or more, such as 10% and all.")
    every = [score for points in arms.values() for scores in points.values() for score in scores]
    x, y = Axis(shares[0], shares[-1], shares, logarithmic=True), linear_axis(every, n=8)
    panel = Panel(LEFT, TOP, WIDTH, HEIGHT, x, y)
    drawing = Drawing(LEFT + WIDTH + 40, TOP + HEIGHT + 72 + LINE * len(arms))
    panel.draw_grid(drawing, title)
    panel.draw_x(drawing, "share of the labels in percent")
    for number, (arm, points) in enumerate(arms.items()):
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        means = {share: statistics.mean(points[share]) for share in sorted(points)}
        panel.draw_line(drawing, list(means.items()), colour)
        for share, mean in means.items():
            panel.draw_line(
                drawing, [(share, min(points[share])), (share, max(points[share]))], colour
            )
            label = f"{arm}, {share:g} %: {mean:.2f}"
            drawing.mark(mark, *panel.place(share, mean), colour, size=5.0, title=label)
        line = TOP + HEIGHT + 76 + LINE * number
        drawing.mark(mark, LEFT + 6, line - 5, colour)
        drawing.label(LEFT + 22, line, arm)
    return drawing
