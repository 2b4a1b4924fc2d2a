"""What fills the blanks of a sentence, as bars."""

from __future__ import annotations

from collections.abc import Sequence

from ..lm.language_model import BLANK, Guesses, LanguageModel
from .drawing import COLOURS, FAINT, Drawing, shorten, shorten_start
from .picture import Picture

# Pixels: the widths of the drawing, of a word and of the longest bar; a line's height.
WIDTH, WORD, BAR, LINE = 440, 160, 190, 24
WORD_CHARACTERS, CONTEXT_CHARACTERS = 17, 20


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
    height = LINE * (3 * (n + 1) + 2)
    drawing = Drawing(WIDTH, height * len(positions))
    for number, position in enumerate(positions):
        top = height * number + LINE
        drawing.label(10, top, surroundings(words, position), bold=True)
        filled = lm.fill(words, position, n)
        sides = (("from the left", filled.forward), ("from the right", filled.backward),
                 ("from both", filled.both))  # fmt: skip
        for colour, (title, guesses) in zip(COLOURS, sides, strict=False):
            top += LINE
            drawing.label(10, top, title, fill=FAINT)
            draw_guesses(drawing, top + LINE, guesses, colour)
            top += LINE * n
    caption = (
        "Words that the language model expects in each blank, with their probabilities: reading "
        "what is on its left, what is on its right, and both."
    )
    return Picture("Filling the blanks", caption, drawing)


def surroundings(words: Sequence[str], position: int) -> str:
    """A blank and what is near it on both sides."""
    left = shorten_start(" ".join(words[:position]), CONTEXT_CHARACTERS)
    right = shorten(" ".join(words[position + 1 :]), CONTEXT_CHARACTERS)
    return f"{left} {BLANK} {right}".strip()


def draw_guesses(drawing: Drawing, y: float, guesses: Guesses, colour: str) -> None:
    """One line for each guess: the word, a bar, its probability."""
    for row, (word, probability) in enumerate(guesses):
        line = y + LINE * row
        width = max(1.0, BAR * probability / guesses[0][1])
        drawing.label(20, line, shorten(word, WORD_CHARACTERS))
        drawing.box(WORD, line - 13, width, 16, colour)
        drawing.label(WORD + width + 6, line, f"{probability:.1%}", fill=FAINT)
