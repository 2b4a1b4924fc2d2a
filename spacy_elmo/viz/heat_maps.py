"""Heat maps: what each component takes from each layer, and how similar texts are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span

from ..pipeline.mixes import Mix
from .figure import cut, in_style, new_figure, save_figure
from .html import INK, PAPER

MOST_TEXTS = 30
MOST_NUMBERS = 10  # texts, so that the numbers in the cells can be read
TEXT_CHARACTERS = 30


@in_style()
def draw_mixes(
    mixes: Sequence[Mix], *, title: str = "Mixes of the layers", output: str | Path | None = None
) -> Any:
    """Draw what each component takes from the layers of the biLM.

    Args:
        mixes: `spacy_elmo.mixes` of a pipeline; they may be of biLMs with different numbers of
            layers.
        title: of the figure.
        output: a file to write, too.

    Returns:
        A figure of matplotlib.

    Raises:
        ValueError: there is no mix.
    """
    if not mixes:
        raise ValueError(
            "There is no mix with weights to draw: the pipeline has no elmo component, or was not "
            "initialized."
        )
    figure, axes = new_figure(title, 1.6 + 0.5 * len(mixes))
    values = np.full((len(mixes), max(len(mix.weights) for mix in mixes)), np.nan)
    for row, mix in zip(values, mixes, strict=True):
        row[: len(mix.weights)] = mix.weights
    heat_map(axes, values)
    axes.set_xticks(range(values.shape[1]))
    axes.set_xlabel("layer")
    axes.set_yticks(range(len(mixes)), [f"{mix_name(mix)}\nγ = {mix.gamma:.2f}" for mix in mixes])
    return save_figure(figure, output)


def mix_name(mix: Mix) -> str:
    """The component of a mix, with its listener where that says more."""
    is_plain = mix.listener in ("elmo", "tok2vec")  # at the input
    return mix.component if is_plain else f"{mix.component}: {mix.listener}"


@in_style()
def draw_similarity(texts: Iterable[Doc | Span], *, output: str | Path | None = None) -> Any:
    """Draw how similar several Docs or Spans are, each to each, as ``similarity`` computes it.

    The lightest shade is the least similar pair, the darkest the most similar one.

    Args:
        texts: 2 to `MOST_TEXTS`.
        output: a file to write, too.

    Returns:
        A figure of matplotlib.

    Raises:
        ValueError: there are too few or too many.
    """
    texts = list(texts)
    n = len(texts)
    if not 2 <= n <= MOST_TEXTS:
        raise ValueError(f"The matrix compares 2 to {MOST_TEXTS} Docs or Spans, not {n}.")
    values = np.array([[one.similarity(other) for other in texts] for one in texts])
    pairs = values[~np.eye(n, dtype=bool)]
    high = 1.0 if n == 2 else pairs.max()  # two texts are all the pairs
    figure, axes = new_figure("Similarity", 1.2 + 0.32 * n)
    heat_map(axes, values, min(pairs.min(), high - 1e-9), high, numbers=n <= MOST_NUMBERS)
    lines = [cut(" ".join(text.text.split()), TEXT_CHARACTERS) for text in texts]
    axes.set_xticks(range(n), range(1, n + 1))
    axes.set_yticks(range(n), [f"{line}  {i}" for i, line in enumerate(lines, 1)])
    axes.xaxis.tick_top()
    axes.tick_params(labelsize=9)
    return save_figure(figure, output)


def heat_map(
    axes: Any, values: np.ndarray, low: float = 0.0, high: float = 1.0, numbers: bool = True
) -> None:
    """A matrix as shades of blue, the first row on top.

    Args:
        axes: where to.
        values: ``(n_rows, n_columns)``; NaN is left empty.
        low, high: the values of the lightest and of the darkest shade.
        numbers: write the value into each cell.
    """
    rows, columns = (np.arange(n + 1) - 0.5 for n in values.shape)  # edges of the cells
    mesh = axes.pcolormesh(
        columns, rows, values, cmap="Blues", vmin=low, vmax=high, edgecolors=PAPER, linewidth=1.5
    )
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for (i, j), value in np.ndenumerate(values):
        if numbers and not np.isnan(value):
            number = f"{round(value, 2) + 0.0:.2f}"  # never -0.00
            colour = PAPER if mesh.norm(value) > 0.6 else INK
            size = min(11, 60 / values.shape[1])
            axes.text(j, i, number, ha="center", va="center", color=colour, size=size)
