"""What fills the blanks of a sentence, as bars."""

from __future__ import annotations

from collections.abc import Sequence

from ..lm.language_model import BLANK, Guesses, LanguageModel
from .drawing import COLOURS, FAINT, Drawing, shorten
from .picture import Picture

# Pixels: the width of the guesses from one side, of a word and of the longest bar; a line's height.
COLUMN, WORD, BAR, LINE = 215, 100, 60, 24
WORD_CHARACTERS = 12


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
    height = LINE * (n + 3)
    drawing = Drawing(3 * COLUMN + 10, height * len(positions))
    for number, position in enumerate(positions):
        top = height * number + LINE
        left, right = words[max(0, position - 4) : position], words[position + 1 : position + 5]
        drawing.label(10, top, " ".join([*left, BLANK, *right]), bold=True)
        filled = lm.fill(words, position, n)
        sides = (("from the left", filled.forward), ("from the right", filled.backward),
                 ("from both", filled.both))  # fmt: skip
        for column, (title, guesses) in enumerate(sides):
            drawing.label(10 + COLUMN * column, top + LINE, title, fill=FAINT)
            draw_guesses(drawing, 10 + COLUMN * column, top + 2 * LINE, guesses, COLOURS[column])
    caption = (
        "Words that the language model expects in each blank, with their probabilities: reading "
        "what is on its left, what is on its right, and both."
    )
    return Picture("Filling the blanks", caption, drawing)


def draw_guesses(drawing: Drawing, x: float, y: float, guesses: Guesses, colour: str) -> None:
    """One line for each guess: the word, a bar, its probability."""
    for row, (word, probability) in enumerate(guesses):
        middle = y + LINE * row
        width = max(1.0, BAR * probability / guesses[0][1])
        drawing.label(x, middle, shorten(word, WORD_CHARACTERS), size=14)
        drawing.box(x + WORD, middle - 12, width, 14, colour)
        drawing.label(x + WORD + width + 4, middle, f"{probability:.1%}", size=12, fill=FAINT)
