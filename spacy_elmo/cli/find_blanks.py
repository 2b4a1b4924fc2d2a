"""Finds the blanks (___) in a text, and prints words that fill them."""

from __future__ import annotations

import re
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from typer import echo, style  # which leave colours out where there is no terminal

from ..lm.language_model import BLANK, Filled
from ..text.segments import sentence_bounds

BLANK_PATTERN = re.compile(r"(?<![^\W_])_{3,}(?![^\W_])")
MARK = "\ue000"  # the token for a blank; no punctuation, and in no word


class Blank(NamedTuple):
    """A blank in its sentence.

    Attributes:
        left, right: the text of the sentence on both sides.
        words: the words of the sentence, including blanks.
        place: index of the blank among the words.
    """

    left: str
    right: str
    words: list[str]
    place: int


def find_blanks(nlp: Language, text: str) -> list[Blank]:
    """Find the blanks in a text."""
    parts = re.split(f"({MARK})", BLANK_PATTERN.sub(MARK, one_line(text)))
    docs = [nlp.make_doc(part) for part in parts if part]
    doc = Doc.from_docs(docs, ensure_whitespace=False, attrs=["ORTH"]) or nlp.make_doc("")
    blanks = []
    for inside in sentence_bounds(doc).tokens:
        words = [doc[i].text.replace(MARK, BLANK) for i in inside]
        for place, i in enumerate(inside):
            if doc[i].text == MARK:
                sides = doc[inside[0] : i].text_with_ws, doc[i + 1 : inside[-1] + 1].text
                left, right = (side.replace(MARK, BLANK) for side in sides)
                blanks.append(Blank(left, right, words, place))
    return blanks


def one_line(text: str) -> str:
    """Join the lines of a text.

    Raises:
        ValueError: the text has a surrogate, which Python decodes from a byte of the command line
            that is not UTF-8. A replacement would change the sentence.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        byte, before = ord(text[error.start]) & 0xFF, text[: error.start][-20:]
        raise ValueError(
            f"The text is not UTF-8: after {before!r} it has the byte 0x{byte:02x}. Convert it, or "
            f"set the terminal to UTF-8."
        ) from None
    return " ".join(text.split())


def print_filled(blank: Blank, filled: Filled) -> None:
    """Print a sentence with its blank, and the likeliest words for the blank."""
    echo(f"\n  {blank.left}[{style(BLANK, fg='cyan', bold=True)}]{blank.right}")
    for name, guesses in zip(("left to right", "right to left", "both"), filled, strict=True):
        echo(f"    {name:15}" + "  ".join(f"{word} {p:.1%}" for word, p in guesses))
