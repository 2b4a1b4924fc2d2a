"""The mixes of a pipeline: bars, and a heat map of tasks by layers."""

from __future__ import annotations

from collections.abc import Sequence

from ..pipeline.scalar_mix import Mix
from .drawing import COLOURS, FAINT, Drawing, shade, shorten, text_on
from .picture import Picture

WIDTH = 440
LINE, BAR, GAP = 24, 22, 10  # heights in pixels: of a name, of a bar, between two mixes
BARS = 36  # where bars begin; what is on their left is the number of the layer
LEFT, RIGHT, CELL = 156, 64, 44  # of the heat map: the names are on its left, γ is on its right
NAME_CHARACTERS, MOST_CHARACTERS = 14, 40


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
    drawing = Drawing(WIDTH, 40 + sum(map(bars_height, found)) + 40 + CELL * len(found) + 10)
    drawing.label(BARS, 26, "weight of each layer", fill=FAINT)
    y = 36.0
    for mix in found:
        draw_bars(drawing, y, mix)
        y += bars_height(mix)
    draw_heat_map(drawing, y + 34, found)
    caption = (
        "What each component takes from the layers of the biLM: layer 0 is the token layer, which "
        "knows nothing of context. The weights of a mix add up to 1; γ scales the result."
    )
    return Picture(f"Mixes of “{name}”", caption, drawing)


def bars_height(mix: Mix) -> float:
    return LINE + BAR * len(mix.weights) + GAP


def draw_bars(drawing: Drawing, top: float, mix: Mix) -> None:
    """A bar for the weight of each layer, below the name of the mix."""
    drawing.label(BARS, top + LINE - 6, mix_name(mix, MOST_CHARACTERS), bold=True)
    room = WIDTH - BARS - 60  # for the value beside the longest bar
    for layer, weight in enumerate(mix.weights):
        y = top + LINE + BAR * layer
        title = f"{mix_name(mix)}: layer {layer}, weight {weight:.3f}"
        width = max(weight * room, 1.0)
        drawing.label(BARS - 10, y + BAR * 0.75, str(layer), anchor="end")
        drawing.box(BARS, y + 2, width, BAR - 4, layer_colour(layer), title=title)
        drawing.label(BARS + width + 8, y + BAR * 0.75, f"{weight:.2f}")
    bottom = top + LINE + BAR * len(mix.weights)
    drawing.line((BARS, top + LINE), (BARS, bottom))


def draw_heat_map(drawing: Drawing, y: float, found: Sequence[Mix]) -> None:
    """A row for each mix, below the numbers of the layers."""
    size = (WIDTH - LEFT - RIGHT) / max(len(mix.weights) for mix in found)
    font = min(15.0, size * 0.38)
    drawing.label(12, y, "layer", fill=FAINT)
    drawing.label(WIDTH - 12, y, "γ", anchor="end", fill=FAINT)
    for layer in range(max(len(mix.weights) for mix in found)):
        drawing.label(LEFT + (layer + 0.5) * size, y, str(layer), anchor="middle", fill=FAINT)
    y += 10
    for mix in found:
        drawing.label(12, y + CELL * 0.6, mix_name(mix), bold=True)
        for layer, weight in enumerate(mix.weights):
            x = LEFT + layer * size
            title = f"{mix_name(mix)}: layer {layer}, weight {weight:.3f}"
            drawing.box(x, y, size, CELL, shade(weight), stroke_width=2.0, title=title)
            drawing.label(
                x + size / 2, y + CELL * 0.6, f"{weight:.2f}", size=font, anchor="middle",
                fill=text_on(weight),
            )  # fmt: skip
        drawing.label(WIDTH - 12, y + CELL * 0.6, f"{mix.gamma:.2f}", anchor="end")
        y += CELL


def layer_colour(layer: int) -> str:
    """Layers next to each other differ in lightness, too."""
    return COLOURS[(0, 4, 1, 2, 3, 5)[layer % 6]]


def mix_name(mix: Mix, most: int = NAME_CHARACTERS) -> str:
    """The component of a mix, with its listener where that says more."""
    name = mix.component if mix.listener in ("elmo", "0") else f"{mix.component} {mix.listener}"
    return shorten(name, most)
