"""The mixes of a pipeline: a heat map of tasks by layers."""

from __future__ import annotations

from collections.abc import Sequence

from ..pipeline.mixes import Mix
from .figure import heat_map, in_style, new_figure
from .picture import Picture


@in_style()
def draw_mixes(found: Sequence[Mix], name: str) -> Picture:
    """The picture of the weights of mixes.

    Args:
        found: at least one; they may be of biLMs with different numbers of layers.
        name: of the pipeline, for the title.

    Raises:
        ValueError: there is none.
    """
    if not found:
        raise ValueError(
            f"The pipeline '{name}' has no mix with weights: it has no elmo component, or was not "
            f"initialized."
        )
    figure, axes = new_figure(1 + 0.5 * len(found))
    n_weights = max(len(mix.weights) for mix in found)
    values = [[*mix.weights, *[float("nan")] * (n_weights - len(mix.weights))] for mix in found]
    heat_map(axes, values)
    axes.set_xticks(range(n_weights))
    axes.set_xlabel("layer")
    axes.set_yticks(range(len(found)), [f"{mix_name(mix)}\nγ = {mix.gamma:.2f}" for mix in found])
    caption = (
        "What each component takes from the layers of the biLM: layer 0 is the token layer, which "
        "knows nothing of context. The weights of a mix add up to 1; γ scales the result."
    )
    return Picture(f"Mixes of “{name}”", caption, figure)


def mix_name(mix: Mix) -> str:
    """The component of a mix, with its listener where that says more."""
    is_plain = mix.listener in ("elmo", "tok2vec")  # at the input
    return mix.component if is_plain else f"{mix.component}: {mix.listener}"
