"""Figures of matplotlib in one style, and their SVG in a page."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

import numpy as np

from ..util.files import atomic_file
from ..util.optional_imports import import_extra
from .page import INK, PAPER, replace_controls

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
PIXELS = 96  # to the inch, in browsers
WIDTH = 5.6  # inches: labels can be read on a phone
# Okabe and Ito's colours for the colour-blind, in an order whose neighbours differ in lightness.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#1a1a1a", "#f0e442")
MARKERS = "os^DPv*X"
# With the characters of Korean, Chinese and Japanese, on Linux, macOS and Windows.
FONTS = (
    "DejaVu Sans", "Noto Sans CJK KR", "Noto Sans CJK JP", "NanumGothic", "Apple SD Gothic Neo",
    "Hiragino Sans", "Malgun Gothic", "Microsoft YaHei", "Noto Sans",
)  # fmt: skip
STYLE = {
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.12,
    "figure.facecolor": PAPER,
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid.axis": "y",
    "grid.color": "#e4e4e4",
    "savefig.dpi": 200,
    "svg.fonttype": "none",  # text as text, in the fonts of the reader
    "text.parse_math": False,  # $ is a dollar
}


@contextmanager
def in_style() -> Iterator[None]:
    """A context, or a decorator, in which figures are drawn and saved in the style of this package,
    whatever style the user has set.

    Raises:
        ValueError: matplotlib is missing.
    """
    import_extra("matplotlib", "viz", "pictures are drawn by matplotlib", "spacy_elmo.viz")
    from matplotlib.font_manager import fontManager
    from matplotlib.style import context

    installed = set(fontManager.get_font_names())
    fonts = {"font.family": [font for font in FONTS if font in installed]}
    with context(["default", STYLE, fonts]):
        yield


def new_figure(height: float, **settings: Any) -> tuple[Figure, Any]:
    """A figure and its axes.

    Args:
        height: in inches; the width is `WIDTH`.
        settings: of ``Figure.subplots``, such as the number of rows.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    return figure, figure.subplots(**settings)


def heat_map(
    axes: Any, values: Any, low: float = 0.0, high: float = 1.0, numbers: bool = True
) -> None:
    """A matrix as shades of blue, the first row on top.

    Args:
        axes: where to.
        values: ``(n_rows, n_columns)``; NaN is left empty.
        low, high: the values of the lightest and of the darkest shade.
        numbers: write the value into each cell.
    """
    rows, columns = (np.arange(n + 1) - 0.5 for n in np.shape(values))  # edges of the cells
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
            axes.text(j, i, number, ha="center", va="center", color=colour)


@in_style()
def to_svg(figure: Figure, title: str, titles: Mapping[str, str]) -> str:
    """A figure as an SVG element that needs no other file; a page can have several.

    Args:
        figure: the figure.
        title: names it to screen readers.
        titles: what is shown while the pointer is over a link, by the link's target.
    """
    from matplotlib import rc_context

    buffer = StringIO()
    salt = replace_controls(title)  # names differ within a page
    with rc_context({"svg.hashsalt": salt}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # browsers have fonts
        figure.savefig(buffer, format="svg", metadata=NO_METADATA)
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)
    svg = ET.fromstring(buffer.getvalue())
    for group in svg.iter(f"{{{SVG}}}g"):
        group.attrib.pop("id", None)
    for link in svg.iter(f"{{{SVG}}}a"):
        add_title(link, titles.get(link.get(f"{{{XLINK}}}href", ""), ""))
    add_title(svg, title)
    width = figure.get_size_inches()[0] * PIXELS
    style = f"width:100%;max-width:{width:.0f}px;height:auto;background:{PAPER}"
    svg.attrib = {"role": "img", "style": style, "viewBox": svg.get("viewBox", "")}
    return ET.tostring(svg, encoding="unicode")


def add_title(element: ET.Element, text: str) -> None:
    title = ET.Element(f"{{{SVG}}}title")
    title.text = replace_controls(text)
    element.insert(0, title)


@in_style()
def save_image(figure: Figure, file: Path) -> None:
    """Write a figure as an image, whole or not at all; the suffix decides the format.

    Warns:
        UserWarning: no installed font has some of its characters, for which boxes are drawn.
    """
    with atomic_file(file) as temporary:
        figure.savefig(temporary, format=file.suffix[1:].lower())


def cut(text: str, most: int) -> str:
    """A text for a label, as wide as so many Latin characters at most; those of Korean, Chinese and
    Japanese are as wide as two."""
    text = replace_controls(text)
    ends = list(accumulate(2 if east_asian_width(c) in "WF" else 1 for c in text))
    fits = not ends or ends[-1] <= most
    return text if fits else text[: bisect_left(ends, most)] + "…"


def cut_start(text: str, most: int) -> str:
    """As `cut`, but it is the end that stays."""
    return cut(text[::-1], most)[::-1]
