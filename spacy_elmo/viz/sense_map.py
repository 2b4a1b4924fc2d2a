"""The senses of a word: its contexts as points, each group with a colour and a shape."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from ..senses.clusters import center, project
from .figure import COLOURS, MARKERS, columns, cut, in_style, new_figure, save_figure
from .html import INK, clean

if TYPE_CHECKING:
    from ..senses.occurrences import Sense, Senses

KEYWORD_CHARACTERS, LABEL_CHARACTERS = 34, 30
MARGIN = 0.12  # around the points, as a share of their extent
CHARACTER, LINE, GAP = 0.0105, 0.03, 0.015  # of labels, as shares of the picture
LEFT, RIGHT = re.compile(r"(?:\S+\s+){0,3}\S*$"), re.compile(r"\S*(?:\s+\S+){0,2}")  # of a word


@in_style()
def draw_senses(found: Senses, *, output: str | Path | None = None) -> Any:
    """Draw the contexts of a word, grouped by similarity.

    Points near each other are contexts with similar vectors (their first two principal
    components). Those of the most typical contexts have their words beside them, where there is
    room. In HTML, each shows its sentence to the pointer, and links to it in a list below.

    Args:
        found: from `spacy_elmo.find_senses`.
        output: a file to write, too.

    Returns:
        A figure of matplotlib.
    """
    groups = found.groups
    points = project(center(np.stack([c.vector for group in groups for c in group.contexts])))
    figure, axes = new_figure(f"Senses of “{found.word}”", 5.6 + 0.26 * len(groups))
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.margins(MARGIN)
    key = crc32(found.word.encode())  # a notebook has several pictures
    tips: dict[str, str] = {}
    below = []
    for number, group in enumerate(groups):
        own = slice(len(tips), len(tips) + len(group.contexts))
        links = [f"#context-{key:x}-{i}" for i in range(own.start, own.stop)]
        # From the ninth group on, colours and shapes form new pairs.
        marker = MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]
        label = describe(number, group)
        dots = axes.scatter(
            *points[own].T, s=55, c=COLOURS[number % len(COLOURS)], marker=marker, edgecolors=INK,
            linewidths=0.6, label=label,
        )  # fmt: skip
        dots.set_urls(links)
        below += [f"<h2>{clean(label)}</h2>", "<ol>"]
        for link, context in zip(links, group.contexts, strict=True):
            tips[link] = "".join(context.text).strip()
            left, word, right = map(clean, context.text)
            below.append(f'<li id="{link[1:]}" dir="auto">{left}<b>{word}</b>{right}</li>')
        below.append("</ol>")
    label_points(axes, points, groups)
    figure.legend(loc="outside lower left", frameon=False)
    return save_figure(figure, output, tips, "\n".join(below))


def label_points(axes: Any, points: np.ndarray, groups: Sequence[Sense]) -> None:
    """Write words of their sentences beside points where there is room, beside those of each
    group's most typical contexts first."""
    ranked = [ranked for group in groups for ranked in enumerate(group.contexts)]
    extent = np.ptp(points, axis=0).clip(1e-12)
    places = (MARGIN + (points - points.min(axis=0)) / extent) / (1 + 2 * MARGIN)
    taken = [(x, x, y) for x, y in places]  # from, to, and at which height
    for i in sorted(range(len(ranked)), key=lambda i: ranked[i][0]):
        (left, word, right), (x, y) = ranked[i][1].text, places[i]
        near = "".join([*LEFT.findall(left)[:1], word, *RIGHT.findall(right)[:1]])
        text = cut(" ".join(near.split()), LABEL_CHARACTERS)
        width = CHARACTER * columns(text)
        for start, side in ((x + GAP, "left"), (x - GAP - width, "right")):
            end = start + width
            others = any(a < end and b > start and abs(h - y) < LINE for a, b, h in taken)
            if start > 0 and end < 1 and not others:
                taken.append((start, end, y))
                place = start if side == "left" else end
                axes.text(place, y, text, ha=side, va="center", size=8, transform=axes.transAxes)
                break


def describe(number: int, group: Sense) -> str:
    """The name of a group: its number, its size, its keywords."""
    words = cut(", ".join(group.keywords), KEYWORD_CHARACTERS)
    n = len(group.contexts)
    name = f"{number + 1} · {n} {'context' if n == 1 else 'contexts'}"
    return f"{name} · {words}" if words else name
