"""Bars of the words that fill the blanks of a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from ..lm.language_model import BLANK, LanguageModel, checked
from .figure import COLOURS, cut, cut_start, in_style, new_figure
from .page import FAINT
from .picture import Picture

LINE = 0.26  # inches: the height of a bar
WORD_CHARACTERS, CONTEXT_CHARACTERS = 17, 20
SIDES = ("from the left", "from the right", "from both")  # as in `Filled`


@in_style()
def draw_blanks(lm: LanguageModel, words: Sequence[str], n: int = 5) -> Picture:
    """The likeliest words for each blank, expected from the left, from the right and from both.

    Args:
        lm: a language model.
        words: a sentence, with `BLANK` for each word to predict.
        n: how many words for each.

    Raises:
        ValueError: there is no blank, or n is below 1.
    """
    words = checked(words)
    positions = [i for i, word in enumerate(words) if word == BLANK]
    if not positions:
        raise ValueError(f"The sentence has no blank: write {BLANK} for each word to predict.")
    filled = [guesses for position in positions for guesses in lm.fill(words, position, n)]
    rows = len(filled)
    figure, axes = new_figure(rows * (LINE * n + 0.45) + 0.3 * len(positions), nrows=rows)
    for row, (panel, guesses) in enumerate(zip(axes, filled, strict=True)):
        position, side = positions[row // len(SIDES)], row % len(SIDES)
        places, values = range(len(guesses)), [p for _, p in guesses]
        bars = panel.barh(places, values, color=COLOURS[side], height=0.8)
        panel.bar_label(bars, [f"{p:.1%}" for p in values], padding=4, color=FAINT)
        panel.set_yticks(places, [cut(word, WORD_CHARACTERS) for word, _ in guesses])
        panel.invert_yaxis()
        panel.set(xlim=(0, 1.25 * max(values, default=1)), xticks=[])
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
        context = "" if side else f"{surroundings(words, position)}\n"
        panel.set_title(context + SIDES[side])
    caption = (
        "Words that the language model expects in each blank, with their probabilities: reading "
        "what is on its left, what is on its right, and both."
    )
    return Picture("Filling the blanks", caption, figure)


def surroundings(words: Sequence[str], position: int) -> str:
    """A blank and what is near it on both sides."""
    left = cut_start(" ".join(words[:position]), CONTEXT_CHARACTERS)
    right = cut(" ".join(words[position + 1 :]), CONTEXT_CHARACTERS)
    return f"{left} {BLANK} {right}".strip()
