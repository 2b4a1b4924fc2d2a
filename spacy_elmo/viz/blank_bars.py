"""Draws bars for the words that may fill the blanks in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..lm.language_model import BLANK, LanguageModel, check_sentence
from .figure import COLOURS, FAINT, cut, in_style, new_figure, save_figure

ROOM = 1.25  # times the longest bar, with its number beside it
LINE = 0.26  # inches, the height of a bar
WORD_CHARACTERS, CONTEXT_CHARACTERS = 17, 20
SIDES = ("From the left", "From the right", "From both")  # as in `Filled`


@in_style()
def draw_blanks(
    lm: LanguageModel, words: Sequence[str], n: int = 5, *, output: str | Path | None = None
) -> Any:
    """Draw the likeliest words for each blank: from the left, from the right, and from both.

    All bars have one scale.

    Args:
        lm: a language model.
        words: a sentence, with `BLANK` for each word to predict.
        n: the number of words for each blank.
        output: the file to write.

    Returns:
        A figure of matplotlib.

    Raises:
        ValueError: there is no blank, or n is below 1.
    """
    words = check_sentence(words, n)
    positions = [i for i, word in enumerate(words) if word == BLANK]
    if not positions:
        raise ValueError(f"The sentence has no blank: write {BLANK} for each word to predict.")
    panels = [(i, side, top) for i in positions for side, top in enumerate(lm.fill(words, i, n))]
    rows, longest = len(panels), max(probability for *_, top in panels for _, probability in top)
    figure, axes = new_figure("Filling the blanks", rows * (LINE * n + 0.45) + 0.8, nrows=rows)
    for panel, (position, side, guesses) in zip(axes, panels, strict=True):
        labels = [cut(word, WORD_CHARACTERS) for word, _ in guesses]
        values = [probability for _, probability in guesses]
        bars = panel.barh(range(len(guesses)), values, tick_label=labels, color=COLOURS[side])
        panel.bar_label(bars, fmt="{:.1%}", padding=4, color=FAINT)
        panel.invert_yaxis()
        panel.set(xlim=(0, ROOM * longest), xticks=[])
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
        left = cut(" ".join(words[:position])[::-1], CONTEXT_CHARACTERS)[::-1]
        right = cut(" ".join(words[position + 1 :]), CONTEXT_CHARACTERS)
        panel.set_title(f"{SIDES[side]}: {left} {BLANK} {right}".strip())
    return save_figure(figure, output)
