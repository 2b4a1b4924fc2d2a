"""Draws the senses of a word: contexts as points, with a colour and a shape for each group."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..senses.clusters import center, project
from .figure import INK, cut, in_style, new_figure, save_figure

if TYPE_CHECKING:
    from ..senses.occurrences import Context, Senses

LABEL_CHARACTERS, KEYWORD_CHARACTERS = 30, 34
DOT, GAP = 5, 7  # half of a point's width, and the distance of its label, in points
# A few words before the end of a text, and after its beginning.
LEFT, RIGHT = re.compile(r"(?:\S+\s+){0,3}\S*$"), re.compile(r"\S*(?:\s+\S+){0,2}")


@in_style()
def draw_senses(senses: Senses, *, output: str | Path | None = None) -> Any:
    """Draw the contexts of a word, grouped by similarity.

    Contexts with similar vectors are points near each other (the first two principal components).
    The most typical contexts have their words beside them, where there is room.

    Args:
        senses: the senses from `spacy_elmo.find_senses`.
        output: the file to write.

    Returns:
        A figure of matplotlib.
    """
    contexts = [context for group in senses.groups for context in group.contexts]
    points = project(center(np.stack([context.vector for context in contexts])))
    figure, axes = new_figure(f"Senses of “{senses.word}”", 5.6 + 0.26 * len(senses.groups))
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.margins(0.12)
    ranks = list[int]()  # how typical each point is for its group
    for number, group in enumerate(senses.groups, 1):
        n = len(group.contexts)
        label = f"{number} · {n} contexts · {cut(', '.join(group.keywords), KEYWORD_CHARACTERS)}"
        members = points[len(ranks) :][:n]
        axes.plot(*members.T, linestyle="", markersize=7.5, markeredgecolor=INK, label=label)
        ranks += range(n)
    figure.legend(loc="outside lower left", frameon=False)
    order = np.argsort(ranks, kind="stable")
    label_points(figure, points[order], [contexts[i] for i in order])
    return save_figure(figure, output)


def label_points(figure: Any, points: np.ndarray, contexts: Sequence[Context]) -> None:
    """Write words of its sentence beside each point, in this order, where there is room."""
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()  # places the axes
    [axes], pixels = figure.axes, figure.dpi / 72
    middle = np.mean(axes.get_xlim())
    places = axes.transData.transform(points)
    taken = [Bbox([place - DOT * pixels, place + DOT * pixels]) for place in places]
    for point, context in zip(points, contexts, strict=True):
        left, word, right = context.text
        near = "".join([*LEFT.findall(left)[:1], word, *RIGHT.findall(right)[:1]])
        gap, side = (GAP, "left") if point[0] < middle else (-GAP, "right")
        label = axes.annotate(
            cut(near, LABEL_CHARACTERS), point, (gap, 0), textcoords="offset points", ha=side,
            va="center", size=8,
        )  # fmt: skip
        box = label.get_window_extent()
        if box.count_overlaps(taken) or not axes.bbox.x0 < box.x0 < box.x1 < axes.bbox.x1:
            label.remove()
        else:
            taken.append(box)
