"""The mixes of a pipeline: bars, and a heat map of tasks by layers."""

from __future__ import annotations

from collections.abc import Sequence

from ..pipeline.scalar_mix import Mix
from .drawing import COLOURS, FAINT, Drawing, shade, shorten, text_on
from .picture import Picture

WIDTH, LEFT, RIGHT = 440, 160, 90  # the names are on the left, γ on the right
BAR, GAP, CELL = 22, 20, 44  # heights in pixels
NAME_CHARACTERS = 15


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
    n_layers = max(len(mix.weights) for mix in found)
    bars_height = sum(BAR * len(mix.weights) + GAP for mix in found)
    drawing = Drawing(WIDTH, 40 + bars_height + 50 + CELL * len(found) + 20)
    room = WIDTH - LEFT - RIGHT
    drawing.label(LEFT, 26, "weight of each layer", size=15, fill=FAINT)
    y = 40.0
    for mix in found:
        drawing.label(12, y + BAR * 0.8, mix_name(mix), bold=True)
        for layer, weight in enumerate(mix.weights):
            title = f"{mix_name(mix)}: layer {layer}, weight {weight:.3f}"
            width = max(weight * room, 1.0)
            drawing.label(LEFT - 10, y + BAR * 0.8, str(layer), anchor="end")
            drawing.box(LEFT, y + 2, width, BAR - 4, layer_colour(layer), title=title)
            drawing.label(LEFT + width + 8, y + BAR * 0.8, f"{weight:.2f}")
            y += BAR
        y += GAP
    drawing.line((LEFT, 36), (LEFT, y - GAP))

    y += 14
    size = room / n_layers
    for layer in range(n_layers):
        drawing.label(LEFT + (layer + 0.5) * size, y, f"layer {layer}", anchor="middle", fill=FAINT)
    drawing.label(WIDTH - 12, y, "γ", anchor="end", fill=FAINT)
    y += 12
    for mix in found:
        drawing.label(12, y + CELL * 0.6, mix_name(mix), bold=True)
        for layer, weight in enumerate(mix.weights):
            x = LEFT + layer * size
            drawing.box(x, y, size, CELL, shade(weight), stroke_width=2.0)
            drawing.label(
                x + size / 2, y + CELL * 0.6, f"{weight:.2f}", anchor="middle", fill=text_on(weight)
            )
        drawing.label(WIDTH - 12, y + CELL * 0.6, f"{mix.gamma:.2f}", anchor="end")
        y += CELL
    caption = (
        "What each component takes from the layers of the biLM: layer 0 is the token layer, which "
        "knows nothing of context. The weights of a mix add up to 1; γ scales the result."
    )
    return Picture(f"Mixes of “{name}”", caption, drawing)


def layer_colour(layer: int) -> str:
    """Layers next to each other differ in lightness, too."""
    return COLOURS[(0, 4, 1, 2, 3, 5)[layer % 6]]


def mix_name(mix: Mix) -> str:
    """The component of a mix, with its listener where that says more."""
    name = mix.component if mix.listener in ("elmo", "0") else f"{mix.component} {mix.listener}"
    return shorten(name, NAME_CHARACTERS)
