"""The senses of a word: its contexts as points, each group with a colour and a shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..clusters import center, project
from ..senses import Sense, Senses
from .drawing import COLOURS, FAINT, INK, MARKS, Drawing, clean, shorten
from .picture import Picture

WIDTH, SIDE, MARGIN = 520, 520, 36
LINE = 30  # pixels of a line of the legend
KEYWORD_CHARACTERS = 34


def draw_senses(found: Senses) -> Picture:
    """The picture of a word's contexts.

    Points near each other are contexts with similar vectors (their first two principal
    components). Each has its sentence as a title, and links to it in the list below.
    """
    groups = found.groups
    vectors = center(np.stack([c.vector for group in groups for c in group.contexts]))
    points, shares = project(vectors)
    drawing = Drawing(WIDTH, SIDE + LINE * len(groups) + 10)
    low, high = points.min(axis=0), points.max(axis=0)
    places = MARGIN + (points - low) / np.maximum(high - low, 1e-12) * (SIDE - 2 * MARGIN)
    drawing.box(10, 10, SIDE - 20, SIDE - 20, "#ffffff", stroke=FAINT)
    index = 0
    for number, group in enumerate(groups):
        for context in group.contexts:
            x, y = places[index].tolist()
            draw_mark(
                drawing, number, x, SIDE - y,
                title="".join(context.text).strip(), link=f"#context-{index + 1}",
            )  # fmt: skip
            index += 1
    for number, group in enumerate(groups):
        y = SIDE + LINE * (number + 0.5)
        draw_mark(drawing, number, 24, y - 5, size=8.0)
        drawing.label(44, y, legend(number, group), size=16)
    n = sum(len(group.contexts) for group in groups)
    some = "" if found.complete else "the first "
    caption = (
        f"{some}{n} contexts of “{found.word}”, in {len(groups)} "
        f"{'group' if len(groups) == 1 else 'groups'} of similar vectors (context and topic). Near "
        f"points are similar contexts; the two axes show {shares.sum():.0%} of the variance. Point "
        f"at a mark to read its sentence, or follow it to the list."
    )
    return Picture(
        f"Senses of “{found.word}”", caption[0].upper() + caption[1:], drawing, list_contexts(found)
    )


def draw_mark(drawing: Drawing, number: int, x: float, y: float, **settings: Any) -> None:
    """The mark of a group; from the ninth group on, colours and shapes form new pairs."""
    kind = MARKS[(number + number // len(COLOURS)) % len(MARKS)]
    drawing.mark(
        kind, x, y, COLOURS[number % len(COLOURS)], stroke=INK, stroke_width=0.8, **settings
    )


def legend(number: int, group: Sense) -> str:
    """The name of a group: its number, its size, its keywords."""
    words = shorten(", ".join(group.keywords), KEYWORD_CHARACTERS)
    name = f"{number + 1} · {len(group.contexts)} contexts"
    return f"{name} · {words}" if words else name


def list_contexts(found: Senses) -> str:
    """All contexts in HTML, the most typical ones of each group first."""
    lines = []
    index = 0
    for number, group in enumerate(found.groups):
        lines += [f"<h2>{clean(legend(number, group))}</h2>", "<ol>"]
        for context in group.contexts:
            index += 1
            left, word, right = map(clean, context.text)
            lines.append(
                f'<li id="context-{index}" dir="auto">{left}<strong>{word}</strong>{right}</li>'
            )
        lines.append("</ol>")
    return "\n".join(lines)
