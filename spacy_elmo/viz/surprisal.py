"""A text with the surprisal of each word, in the style of displaCy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spacy.tokens import Doc, Span, Token

from .figure import columns, cut, in_style, new_figure, save_figure
from .html import FAINT, INK, PAPER

MOST_BITS = 20.0  # darkest
WIDTH, LINE = 64, 0.45  # of a line, in Latin characters, and inches to the next


@in_style()
def draw_surprisal(
    texts: Doc | Span | Iterable[Doc | Span], *, output: str | Path | None = None
) -> Any:
    """Draw how unexpected each word is: the darker a word, the less it was expected.

    Below each word is its surprisal in bits; words outside the vocabulary have none.

    Args:
        texts: Docs or Spans that the component elmo_surprisal has read.
        output: a file to write, too.

    Returns:
        A figure of matplotlib.

    Raises:
        ValueError: no text has a surprisal.
    """
    from matplotlib import rcParams

    texts = [texts] if isinstance(texts, (Doc, Span)) else list(texts)
    if not any(token.has_extension("surprisal") and token._.surprisal is not None
               for text in texts for token in text):  # fmt: skip
        raise ValueError(
            "These texts have no surprisal: run them through a pipeline with the component "
            "elmo_surprisal, as in nlp.add_pipe('elmo_surprisal')."
        )
    lines = [line for text in texts for line in split_lines(text)]
    figure, axes = new_figure("Surprisal of each word in bits", 0.7 + LINE * len(lines))
    axes.set(xlim=(0, WIDTH), ylim=(len(lines), 0))
    axes.axis("off")
    mono = ["DejaVu Sans Mono", *rcParams["font.family"]]
    for y, line in enumerate(lines):
        for x, token in line:
            bits, word = token._.surprisal, cut(token.text, WIDTH)
            colour, shade = (FAINT, PAPER) if bits is None else colours(bits / MOST_BITS)
            box = {"boxstyle": "round,pad=0.25", "facecolor": shade, "edgecolor": "none"}
            axes.text(x, y + 0.3, word, va="center", size=10, family=mono, color=colour, bbox=box)
            if bits is not None:
                axes.text(x, y + 0.78, f"{bits:.1f}", va="center", size=7, color=FAINT)
    return save_figure(figure, output)


def split_lines(text: Doc | Span) -> Iterator[list[tuple[int, Token]]]:
    """The words of each line, with the columns where they begin."""
    line: list[tuple[int, Token]] = []
    x = 1
    for token in text:
        width = columns(cut(token.text, WIDTH))
        if line and x + width > WIDTH:
            yield line
            line, x = [], 1
        if not token.is_space:
            line.append((x, token))
            x += max(width, 3) + 2  # for the bits, and between words
    yield line


def colours(share: float) -> tuple[str, str]:
    """Text, and a background from white (0) to dark blue (1 and more) that it has contrast with."""
    mixed = [round(255 + min(share, 1) * (part - 255)) for part in (8, 48, 107)]
    return PAPER if share > 0.62 else INK, "#{:02x}{:02x}{:02x}".format(*mixed)
