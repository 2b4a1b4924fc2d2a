"""Diagrams of shapes and labels as SVG, for the pictures of the documentation."""

from __future__ import annotations

import math
from html import escape
from typing import Any, NamedTuple

from spacy_elmo.viz.figure import FAINT, INK, PAPER

FONT = "DejaVu Sans, Verdana, Arial, sans-serif"

Point = tuple[float, float]


def mark_points(kind: str, x: float, y: float, size: float) -> list[Point]:
    """The outline of a circle, square or triangle around a point, of about the same area."""
    if kind == "circle":
        return polygon(24, x, y, size)
    if kind == "square":
        return polygon(4, x, y, size * 1.25, turn=0.125)
    if kind == "triangle":
        return polygon(3, x, y, size * 1.55)
    raise ValueError(kind)


def polygon(n: int, x: float, y: float, radius: float, turn: float = 0.0) -> list[Point]:
    """The corners of a regular polygon, from the top; ``turn`` is a share of the circle."""
    angles = [2 * math.pi * (i / n + turn) for i in range(n)]
    return [(x + radius * math.sin(angle), y - radius * math.cos(angle)) for angle in angles]


class Shape(NamedTuple):
    """A filled polygon, or a line from point to point.

    Attributes:
        fill: a colour; ``"none"`` for a line.
    """

    points: list[Point]
    fill: str
    stroke: str = PAPER
    stroke_width: float = 1.0


class Label(NamedTuple):
    """One line of text; ``y`` is its baseline, ``anchor`` start, middle or end."""

    x: float
    y: float
    text: str
    size: float = 15.0
    anchor: str = "start"
    fill: str = INK
    bold: bool = False


class Drawing:
    """Shapes and labels in the order in which they are drawn.

    Args:
        width, height: in pixels.
    """

    def __init__(self, width: float, height: float):
        self.width, self.height = width, height
        self.items: list[Shape | Label] = []

    def mark(self, kind: str, x: float, y: float, fill: str, **settings: Any) -> None:
        """Add a circle, a square or a triangle, with the settings of a `Shape`."""
        size = settings.pop("size", 6.0)
        self.items.append(Shape(mark_points(kind, x, y, size), fill, **settings))

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, **settings: Any
    ) -> None:
        """Add a rectangle, with the settings of a `Shape`."""
        corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
        self.items.append(Shape(corners, fill, **settings))

    def line(self, *points: Point, stroke: str = FAINT, width: float = 1.0) -> None:
        """Add a line from point to point."""
        self.items.append(Shape([*points], "none", stroke, width))

    def label(self, x: float, y: float, text: str, **settings: Any) -> None:
        """Add a `Label`."""
        self.items.append(Label(x, y, text, **settings))

    def svg(self, title: str) -> str:
        """The drawing as an SVG element that needs no other file; the title names it to screen
        readers."""
        size = f'width="{self.width:g}" height="{self.height:g}"'
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {self.width:g} '
            f'{self.height:g}" role="img" font-family="{FONT}"><title>{escape(title)}</title>\n'
            f'<rect {size} fill="{PAPER}"/>'
        )
        return "\n".join([head, *map(to_svg, self.items), "</svg>"])


def to_svg(item: Shape | Label) -> str:
    """A shape or a label as an SVG element."""
    if isinstance(item, Label):
        weight = ' font-weight="bold"' if item.bold else ""
        return (
            f'<text x="{item.x:.1f}" y="{item.y:.1f}" font-size="{item.size:g}" fill="{item.fill}" '
            f'text-anchor="{item.anchor}"{weight}>{escape(item.text)}</text>'
        )
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in item.points)
    kind = "polyline" if item.fill == "none" else "polygon"
    return (
        f'<{kind} points="{path}" fill="{item.fill}" stroke="{item.stroke}" '
        f'stroke-width="{item.stroke_width:g}"></{kind}>'
    )
