"""The senses of a word: its contexts as points, each group with a colour and a shape."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from ..senses.clusters import center, project
from ..senses.occurrences import Sense, Senses
from .figure import COLOURS, MARKERS, cut, in_style, new_figure
from .page import INK, clean
from .picture import Picture

KEYWORD_CHARACTERS = 34


@in_style()
def draw_senses(found: Senses) -> Picture:
    """The picture of a word's contexts.

    Points near each other are contexts with similar vectors (their first two principal
    components). Each shows its sentence to the pointer, and links to it in the list below.
    """
    contexts = [context for group in found.groups for context in group.contexts]
    points, shares = project(center(np.stack([context.vector for context in contexts])))
    texts = ["".join(context.text).strip() for context in contexts]
    # A notebook has several pictures: each needs names of its own.
    key = blake2b("\n".join([found.word, *texts]).encode(), digest_size=4).hexdigest()
    ids = [f"context-{key}-{i + 1}" for i in range(len(texts))]
    titles = {f"#{name}": text for name, text in zip(ids, texts, strict=True)}
    links = list(titles)
    n_groups, start = len(found.groups), 0
    figure, axes = new_figure(5.4 + 0.26 * n_groups)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    axes.margins(0.08)
    for number, group in enumerate(found.groups):
        own = slice(start, start + len(group.contexts))
        start = own.stop
        # From the ninth group on, colours and shapes form new pairs.
        marker = MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]
        dots = axes.scatter(
            *points[own].T, s=55, c=COLOURS[number % len(COLOURS)], marker=marker, edgecolors=INK,
            linewidths=0.6, label=legend(number, group),
        )  # fmt: skip
        dots.set_urls(links[own])
    figure.legend(loc="outside lower left", frameon=False)
    caption = (
        f"{'' if found.complete else 'The first '}{len(contexts)} contexts of “{found.word}”, in "
        f"{n_groups} {'group' if n_groups == 1 else 'groups'} of similar vectors (context and "
        f"topic). Near points are similar contexts; the two axes show {shares.sum():.0%} of the "
        f"variance. Point at a mark to read its sentence, or follow it to the list."
    )
    return Picture(f"Senses of “{found.word}”", caption, figure, list_contexts(found, ids), titles)


def legend(number: int, group: Sense) -> str:
    """The name of a group: its number, its size, its keywords."""
    words = cut(", ".join(group.keywords), KEYWORD_CHARACTERS)
    n = len(group.contexts)
    name = f"{number + 1} · {n} {'context' if n == 1 else 'contexts'}"
    return f"{name} · {words}" if words else name


def list_contexts(found: Senses, ids: Sequence[str]) -> str:
    """All contexts in HTML, the most typical ones of each group first, each with its id."""
    lines, names = [], iter(ids)
    for number, group in enumerate(found.groups):
        lines += [f"<h2>{clean(legend(number, group))}</h2>", "<ol>"]
        for context in group.contexts:
            left, word, right = map(clean, context.text)
            item = f'id="{next(names)}" dir="auto"'
            lines.append(f"<li {item}>{left}<strong>{word}</strong>{right}</li>")
        lines.append("</ol>")
    return "\n".join(lines)
