"""Bars of the words that fill the blanks of a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from ..lm.language_model import BLANK, LanguageModel
from .figure import COLOURS, cut, cut_start, in_style, new_figure
from .page import FAINT, replace_controls
from .picture import Picture

LINE = 0.26  # inches: the height of a bar
WORD_CHARACTERS, CONTEXT_CHARACTERS = 17, 20


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
    positions = [i for i, word in enumerate(words) if word == BLANK]
    if not positions:
        raise ValueError(f"The sentence has no blank: write {BLANK} for each word to predict.")
    filled = [lm.fill(words, position, n) for position in positions]
    rows = 3 * len(positions)
    figure, axes = new_figure(rows * (LINE * n + 0.45) + 0.3 * len(positions), nrows=rows)
    panels = iter(axes)
    for position, found in zip(positions, filled, strict=True):
        sides = {"from the left": found.forward, "from the right": found.backward,
                 "from both": found.both}  # fmt: skip
        for number, (title, guesses) in enumerate(sides.items()):
            panel = next(panels)
            names = [cut(replace_controls(word), WORD_CHARACTERS) for word, _ in guesses]
            values = [probability for _, probability in guesses]
            bars = panel.barh(range(len(values)), values, color=COLOURS[number], height=0.8)
            panel.bar_label(bars, [f"{value:.1%}" for value in values], padding=4, color=FAINT)
            panel.set_yticks(range(len(values)), names)
            panel.invert_yaxis()
            panel.set_xlim(0, 1.25 * max(*values, 1e-9, 0))
            panel.tick_params(length=0)
            panel.set_xticks([])
            panel.spines[:].set_visible(False)
            context = f"{surroundings(words, position)}\n" if number == 0 else ""
            panel.set_title(context + title)
    caption = (
        "Words that the language model expects in each blank, with their probabilities: reading "
        "what is on its left, what is on its right, and both."
    )
    return Picture("Filling the blanks", caption, figure)


def surroundings(words: Sequence[str], position: int) -> str:
    """A blank and what is near it on both sides."""
    left = cut_start(" ".join(words[:position]), CONTEXT_CHARACTERS)
    right = cut(" ".join(words[position + 1 :]), CONTEXT_CHARACTERS)
    return replace_controls(f"{left} {BLANK} {right}").strip()
