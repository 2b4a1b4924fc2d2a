"""A drawing as an image, by matplotlib."""

from __future__ import annotations

import warnings
from pathlib import Path

from ..bilm.files import atomic_file
from ..bilm.optional_imports import import_extra
from .drawing import NOT_XML, PAPER, Drawing, Label
from .fonts import choose_fonts

KINDS = (".png", ".pdf", ".jpg")
POINTS_PER_PIXEL = 0.72  # 100 pixels to the inch, 72 points


def save_image(drawing: Drawing, file: Path) -> None:
    """Write a drawing as an image, whole or not at all.

    Raises:
        ValueError: matplotlib is missing.

    Warns:
        UserWarning: no installed font has some of its characters.
    """
    kind = file.suffix.lower()
    need = f"a {kind} file needs matplotlib (.html and .svg files need nothing)"
    Figure = import_extra("matplotlib.figure", "viz", need, str(file)).Figure
    Polygon = import_extra("matplotlib.patches", "viz", need, str(file)).Polygon
    labels = [item for item in drawing.items if isinstance(item, Label)]
    fonts = choose_fonts([NOT_XML.sub("\ufffd", label.text) for label in labels], str(file))
    figure = Figure(figsize=(drawing.width / 100, drawing.height / 100), dpi=200, facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, drawing.width), ylim=(drawing.height, 0))
    axes.set_axis_off()
    for order, item in enumerate(drawing.items):
        if isinstance(item, Label):
            text = NOT_XML.sub("\ufffd", item.text).replace("$", r"\$")  # no formulas
            axes.text(
                item.x, item.y, text, family=fonts, zorder=order, color=item.fill,
                size=item.size * POINTS_PER_PIXEL, weight="bold" if item.bold else "normal",
                ha={"start": "left", "middle": "center", "end": "right"}[item.anchor],
                va="baseline",
            )  # fmt: skip
            continue
        axes.add_patch(
            Polygon(
                item.points, closed=item.fill != "none", facecolor=item.fill, zorder=order,
                edgecolor=item.stroke, linewidth=item.stroke_width * POINTS_PER_PIXEL,
            )
        )  # fmt: skip
    with atomic_file(file) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from")  # said above
        figure.savefig(temporary, format=kind[1:])
