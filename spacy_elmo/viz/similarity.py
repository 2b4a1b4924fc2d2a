"""How similar several texts are: a matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from spacy.tokens import Doc, Span

from .figure import heat_map, in_style, new_figure, shorten
from .page import replace_controls
from .picture import Picture

MOST = 30  # texts
TEXT_CHARACTERS = 46
MOST_NUMBERS = 10  # texts, so that the numbers in the cells can be read


@in_style()
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
    pairs = values[~np.eye(n, dtype=bool)]
    low, high = float(pairs.min()), float(pairs.max())
    figure, (matrix, listed) = new_figure(5.6 + 0.27 * n, nrows=2, height_ratios=[5.6, 0.27 * n])
    heat_map(matrix, values, low, high, digits=2 if n <= MOST_NUMBERS else 0)
    matrix.set_aspect("equal")
    numbers = [str(i + 1) for i in range(n)]
    matrix.set_xticks(range(n), numbers)
    matrix.set_yticks(range(n), numbers)
    matrix.xaxis.tick_top()
    matrix.tick_params(labelsize=min(12, 220 / n))
    listed.set_axis_off()
    listed.set(xlim=(0, 1), ylim=(n, 0))
    for i, text in enumerate(texts):
        line = shorten(replace_controls(" ".join(text.text.split())), TEXT_CHARACTERS)
        listed.text(0.05, i + 0.7, numbers[i], ha="right", weight="bold")
        listed.text(0.08, i + 0.7, line)
    caption = (
        f"Cosines of the vectors of {n} texts, from {low:.2f} (light) to {high:.2f} (dark); "
        f"each text equals itself."
    )
    return Picture("Similarity", caption, figure)
