"""The senses of a word: its contexts as points, each group with a colour and a shape."""

from __future__ import annotations

import numpy as np

from ..senses.clusters import center, project
from ..senses.occurrences import Sense, Senses
from .figure import COLOURS, MARKERS, cut, in_style, new_figure
from .page import INK, clean, replace_controls
from .picture import Picture

KEYWORD_CHARACTERS = 34


@in_style()
def draw_senses(found: Senses) -> Picture:
    """The picture of a word's contexts.

    Points near each other are contexts with similar vectors (their first two principal
    components). Each shows its sentence to the pointer, and links to it in the list below.
    """
    groups = found.groups
    vectors = center(np.stack([c.vector for group in groups for c in group.contexts]))
    points, shares = project(vectors)
    figure, axes = new_figure(5.4 + 0.26 * len(groups))
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.margins(0.08)
    titles: dict[str, str] = {}
    for number, group in enumerate(groups):
        links = [f"#context-{len(titles) + i + 1}" for i in range(len(group.contexts))]
        own = points[len(titles) : len(titles) + len(links)]
        # From the ninth group on, colours and shapes form new pairs.
        marker = MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]
        dots = axes.scatter(
            *own.T, s=55, c=COLOURS[number % len(COLOURS)], marker=marker, edgecolors=INK,
            linewidths=0.6, label=replace_controls(legend(number, group)),
        )  # fmt: skip
        dots.set_urls(links)
        texts = ("".join(context.text).strip() for context in group.contexts)
        titles.update(zip(links, texts, strict=True))
    figure.legend(loc="outside lower left", frameon=False)
    some = "" if found.complete else "the first "
    caption = (
        f"{some}{len(titles)} contexts of “{found.word}”, in {len(groups)} "
        f"{'group' if len(groups) == 1 else 'groups'} of similar vectors (context and topic). Near "
        f"points are similar contexts; the two axes show {shares.sum():.0%} of the variance. Point "
        f"at a mark to read its sentence, or follow it to the list."
    )
    caption = caption[0].upper() + caption[1:]
    title = f"Senses of “{found.word}”"
    return Picture(title, caption, figure, list_contexts(found), titles)


def legend(number: int, group: Sense) -> str:
    """The name of a group: its number, its size, its keywords."""
    words = cut(", ".join(group.keywords), KEYWORD_CHARACTERS)
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
