"""Lines over two axes, with a grid and marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from .drawing import FAINT, Drawing, Point

GRID = "#e4e4e4"
FINE = (1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 7)  # ticks of a short logarithmic axis


class Axis(NamedTuple):
    """The values that an axis shows.

    Attributes:
        low, high: its ends.
        ticks: values with a label.
        logarithmic: equal ratios are equally long.
    """

    low: float
    high: float
    ticks: list[float]
    logarithmic: bool = False

    def until(self, high: float) -> Axis:
        """The axis up to a value that need not be round."""
        high = high if high > self.low else self.high
        return self._replace(high=high, ticks=[tick for tick in self.ticks if tick <= high])

    def share(self, value: float) -> float:
        """Where a value is, from 0 (low) to 1 (high)."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)


def linear_axis(values: Sequence[float], n: int = 5, zero: bool = False) -> Axis:
    """An axis of about n round steps around some values; with ``zero``, it begins there."""
    low, high = (0.0 if zero else min(values)), max(values)
    if high <= low:
        high = low + (abs(low) or 1.0)
    rough = (high - low) / n
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Axis(first * step, last * step, [i * step for i in range(first, last + 1)])


def log_axis(values: Sequence[float]) -> Axis:
    """A logarithmic axis for positive values, with round ticks; a linear one if they are close."""
    low, high = min(values) / 1.02, max(values) * 1.02
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = FINE if high < 5 * low else (1, 2, 5) if high < 1000 * low else (1,)
    ticks = [f * 10.0**power for power in powers for f in factors if low <= f * 10.0**power <= high]
    if len(ticks) < 2:
        return linear_axis(values)
    return Axis(low, high, ticks, logarithmic=True)


class Panel(NamedTuple):
    """The room of a diagram in a drawing, in pixels, and its axes."""

    left: float
    top: float
    width: float
    height: float
    x: Axis
    y: Axis

    def place(self, x: float, y: float) -> Point:
        """Where a point is in the drawing."""
        return (
            self.left + self.width * self.x.share(x),
            self.top + self.height * (1 - self.y.share(y)),
        )

    def draw_grid(self, drawing: Drawing, title: str) -> None:
        """The title, and a line for each value with a label."""
        drawing.label(self.left, self.top - 10, title, bold=True)
        for tick in self.y.ticks:
            start, end = self.place(self.x.low, tick), self.place(self.x.high, tick)
            drawing.line(start, end, stroke=GRID)
            drawing.label(self.left - 8, start[1] + 5, f"{tick:,.6g}", anchor="end", fill=FAINT)

    def draw_x(self, drawing: Drawing, title: str, unit: float = 1.0) -> None:
        """Labels below the panel, in units."""
        bottom = self.top + self.height
        drawing.line((self.left, bottom), (self.left + self.width, bottom))
        for tick in self.x.ticks:
            x, _ = self.place(tick, self.y.low)
            drawing.line((x, bottom), (x, bottom + 5))
            drawing.label(x, bottom + 22, f"{tick / unit:,.6g}", anchor="middle", fill=FAINT)
        drawing.label(self.left + self.width, bottom + 46, title, anchor="end")

    def draw_line(self, drawing: Drawing, points: Sequence[Point], colour: str) -> None:
        """A line through points in the units of the axes."""
        if len(points) > 1:
            drawing.line(*(self.place(*point) for point in points), stroke=colour, width=2.0)
