"""Blanks (___) in a text: finding them, and printing the text around them."""

from __future__ import annotations

import re
from typing import NamedTuple

from spacy.tokens import Doc

from ..lm.language_model import BLANK
from ..text.segments import sentence_bounds

BLANK_PATTERN = re.compile(r"(?<![^\W_])_{3,}(?![^\W_])")
BLANK_WORD = "\ue000"  # for the tokenizer: neither punctuation nor part of any word
CLOSING, OPENING = r"[.,;:!?)\]”’]", r"[(\[“‘]"
PADDED = re.compile(  # the spaces that `prepare` adds
    f"(?<={BLANK}) (?={CLOSING})|^ (?={CLOSING})|(?<={OPENING}) (?={BLANK}|$)"
)


def prepare(text: str) -> str:
    """A text on one line, each blank a word of its own; lone surrogates become ``?``."""
    text = text.encode("utf-8", "replace").decode("utf-8")  # possible in a command line
    return " ".join(BLANK_PATTERN.sub(f" {BLANK_WORD} ", text).split())


def written(doc: Doc, start: int, end: int) -> str:
    """A part of a Doc as written, blanks included."""
    return PADDED.sub("", doc[start:end].text_with_ws.replace(BLANK_WORD, BLANK))


class Blank(NamedTuple):
    """A blank in its sentence.

    Attributes:
        left, right: the text on both sides, as written.
        words: the words of the sentence, including blanks.
        place: its index among these.
    """

    left: str
    right: str
    words: list[str]
    place: int


def find_blanks(doc: Doc) -> list[Blank]:
    """The blanks in the Doc of a text returned by `prepare`."""
    found = []
    for inside in sentence_bounds(doc).tokens:
        texts = [doc[i].text for i in inside]
        words = [BLANK if text == BLANK_WORD else text for text in texts]
        for place, i in enumerate(inside):
            if texts[place] == BLANK_WORD:
                left, right = written(doc, inside[0], i), written(doc, i + 1, inside[-1] + 1)
                right = PADDED.sub("", doc[i].whitespace_ + right)
                found.append(Blank(left, right.rstrip(), words, place))
    return found
