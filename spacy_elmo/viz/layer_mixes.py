"""Draws how much each component takes from each layer of the biLM: a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from ..pipeline.mixes import Mix
from .figure import INK, PAPER, in_style, new_figure, save_figure

MOST_NUMBERS = 10  # in a row; more could not be read


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
    rows, columns = (np.arange(n + 1) - 0.5 for n in weights.shape)  # edges of the cells
    mesh = axes.pcolormesh(columns, rows, weights, cmap="Blues", edgecolors=PAPER, vmin=0, vmax=1)
    for (row, layer), weight in np.ndenumerate(weights):
        if weights.shape[1] <= MOST_NUMBERS:
            colour = PAPER if mesh.norm(weight) > 0.6 else INK
            axes.text(layer, row, f"{weight:.2f}", ha="center", va="center", color=colour, size=9)
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xticks(range(weights.shape[1]))
    axes.set_xlabel("layer")
    axes.set_yticks(range(len(mixes)), [f"{mix_name(mix)}\nγ = {mix.gamma:.2f}" for mix in mixes])
    return save_figure(figure, output)


def mix_name(mix: Mix) -> str:
    """The name of a mix's component, with its listener if there may be several."""
    is_plain = mix.listener in ("elmo", "tok2vec")  # at the input
    return mix.component if is_plain else f"{mix.component}: {mix.listener}"
