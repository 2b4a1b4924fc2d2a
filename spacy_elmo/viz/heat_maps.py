"""Draws heat maps: how much components take from layers, and how similar texts are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span

from ..pipeline.mixes import Mix
from .figure import INK, PAPER, cut, in_style, new_figure, save_figure

MOST_NUMBERS = 10  # in a row; more could not be read
TEXT_CHARACTERS = 30


@in_style()
def draw_mixes(
    mixes: Sequence[Mix], *, title: str = "Mixes of the layers", output: str | Path | None = None
) -> Any:
    """Draw how much each component takes from each layer of the biLM.

    Mixes that were not trained are left out.

    Args:
        mixes: the `spacy_elmo.mixes` of a pipeline.
        title: the title of the figure.
        output: the file to write.

    Returns:
        A figure of matplotlib.

    Raises:
        ValueError: there is no trained mix.
    """
    mixes = [mix for mix in mixes if mix.is_trained]
    if not mixes:
        raise ValueError(
            "There is no trained mix to draw: add an elmo component, let others learn from it, and "
            "train the pipeline."
        )
    figure, axes = new_figure(title, 1.6 + 0.5 * len(mixes))
    # A layer that the biLM of a mix does not have weighs nothing.
    weights = np.array(list(zip_longest(*(mix.weights for mix in mixes), fillvalue=0.0))).T
    heat_map(axes, weights, vmin=0, vmax=1)
    axes.set_xticks(range(weights.shape[1]))
    axes.set_xlabel("layer")
    axes.set_yticks(range(len(mixes)), [f"{mix_name(mix)}\nγ = {mix.gamma:.2f}" for mix in mixes])
    return save_figure(figure, output)


def mix_name(mix: Mix) -> str:
    """The name of a mix's component, with its listener if there may be several."""
    is_plain = mix.listener in ("elmo", "tok2vec")  # at the input
    return mix.component if is_plain else f"{mix.component}: {mix.listener}"


@in_style()
def draw_similarity(texts: Iterable[Doc | Span], *, output: str | Path | None = None) -> Any:
    """Draw the similarity of each pair of Docs or Spans, by their method ``similarity``.

    The least similar pair has the lightest shade.

    Args:
        texts: at least one Doc or Span. More than some thirty are hard to read.
        output: the file to write.

    Returns:
        A figure of matplotlib.
    """
    texts = list(texts)
    n = len(texts)
    figure, axes = new_figure("Similarity", 1.2 + 0.32 * n)
    heat_map(axes, np.array([[one.similarity(other) for other in texts] for one in texts]))
    lines = [cut(text.text, TEXT_CHARACTERS) for text in texts]
    axes.set_xticks(range(n), range(1, n + 1))
    axes.set_yticks(range(n), [f"{line}  {i}" for i, line in enumerate(lines, 1)])
    axes.xaxis.tick_top()
    axes.tick_params(labelsize=9)
    return save_figure(figure, output)


def heat_map(axes: Any, values: np.ndarray, **limits: float) -> None:
    """Draw a matrix in shades of blue, with its numbers if it is small.

    Args:
        axes: the axes to draw to.
        values: ``(n_rows, n_columns)``.
        limits: the values of the lightest and the darkest shade, ``vmin`` and ``vmax``.
    """
    rows, columns = (np.arange(n + 1) - 0.5 for n in values.shape)  # edges of the cells
    mesh = axes.pcolormesh(columns, rows, values, cmap="Blues", edgecolors=PAPER, **limits)
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for (i, j), value in np.ndenumerate(values):
        if values.shape[1] <= MOST_NUMBERS:
            number = f"{round(value, 2) + 0.0:.2f}"  # never -0.00
            colour = PAPER if mesh.norm(value) > 0.6 else INK
            axes.text(j, i, number, ha="center", va="center", color=colour, size=9)
