"""How similar several texts are: a matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from spacy.tokens import Doc, Span

from .drawing import Drawing, shade, shorten, text_on
from .picture import Picture

WIDTH, MOST = 480, 30  # of the matrix
TEXT_CHARACTERS = 46
LINE = 28  # pixels of a line of the list of texts


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
    lines = [shorten(" ".join(text.text.split()), TEXT_CHARACTERS) for text in texts]
    values = np.array([[one.similarity(other) for other in texts] for one in texts])
    pairs = values[~np.eye(n, dtype=bool)]
    low, high = float(pairs.min()), float(pairs.max())
    left = 44.0
    size = (WIDTH - left - 10) / n
    drawing = Drawing(WIDTH, left + n * size + 24 + LINE * n)
    digits = 2 if size >= 36 else 1
    font = min(16.0, size / (digits + 0.6))
    numbers = min(15.0, size * 0.7)  # those above are as wide as a cell at most
    for i in range(n):
        middle = left + (i + 0.5) * size
        drawing.label(middle, left - 12, str(i + 1), size=numbers, anchor="middle")
        drawing.label(left - 12, middle + numbers / 3, str(i + 1), size=numbers, anchor="end")
        for j in range(n):
            share = (values[i, j] - low) / max(high - low, 1e-6) if i != j else 1.0
            x, y = left + j * size, left + i * size
            title = f"{values[i, j]:.3f}\n{lines[i]}\n{lines[j]}"
            drawing.box(x, y, size, size, shade(share), title=title)
            if font >= 10:
                drawing.label(
                    x + size / 2, y + size / 2 + font / 3, f"{values[i, j]:.{digits}f}",
                    size=font, anchor="middle", fill=text_on(share),
                )  # fmt: skip
    for i, line in enumerate(lines):
        y = left + n * size + 24 + LINE * (i + 0.3)
        drawing.label(left - 12, y, str(i + 1), anchor="end", bold=True)
        drawing.label(left, y, line)
    caption = (
        f"Cosines of the vectors of {n} texts, from {low:.2f} (light) to {high:.2f} (dark); "
        f"each text equals itself."
    )
    return Picture("Similarity", caption, drawing)
