"""A matrix of the similarities of texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from spacy.tokens import Doc, Span

from .figure import cut, heat_map, in_style, new_figure
from .page import clean
from .picture import Picture

MOST = 30  # texts
TEXT_CHARACTERS = 200
MOST_NUMBERS = 10  # texts, so that the numbers in the cells can be read


def draw_similarity(texts: Sequence[Doc | Span]) -> Picture:
    """The picture of the similarities of texts, as ``similarity`` computes them.

    The shades go from the least similar pair to the most similar one; equal texts are darkest.

    Args:
        texts: 2 to `MOST` Docs or Spans.

    Raises:
        ValueError: there are too few or too many.
    """
    n = len(texts)
    if not 2 <= n <= MOST:
        raise ValueError(f"The matrix compares 2 to {MOST} Docs or Spans, not {n}.")
    values = np.array([[one.similarity(other) for other in texts] for one in texts])
    lines = [cut(" ".join(text.text.split()), TEXT_CHARACTERS) for text in texts]
    low, high = shades(values)
    caption = (
        f"Cosines of the vectors of {n} texts, from {low:.2f} (light) to {high:.2f} (dark); each "
        f"text equals itself."
    )
    return draw_matrix(values, lines, "Similarity", caption)


@in_style()
def draw_matrix(values: np.ndarray, lines: Sequence[str], title: str, caption: str) -> Picture:
    """The picture of a matrix of similarities, with a list of what is compared below it.

    Args:
        values: ``(n, n)``, see `shades`.
        lines: n texts.
        title, caption: of the picture.
    """
    n = len(lines)
    figure, axes = new_figure(5.6)
    heat_map(axes, values, *shades(values), numbers=n <= MOST_NUMBERS)
    axes.set_aspect("equal")
    axes.set_xticks(range(n), range(1, n + 1))
    axes.set_yticks(range(n), range(1, n + 1))
    axes.xaxis.tick_top()
    axes.tick_params(labelsize=min(12, 220 / n))
    listed = "".join(f'<li dir="auto">{clean(line)}</li>\n' for line in lines)
    return Picture(title, caption, figure, f"<ol>\n{listed}</ol>")


def shades(values: np.ndarray) -> tuple[float, float]:
    """The values of the lightest and of the darkest shade: the smallest and the largest beside the
    diagonal; two texts, which have only one, are compared with 1."""
    pairs = values[~np.eye(len(values), dtype=bool)]
    low, high = float(pairs.min()), float(pairs.max())
    if len(values) == 2:
        high = max(high, 1.0)
    return min(low, high - 1e-9), high
