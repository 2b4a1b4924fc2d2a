"""Blanks (___) in a text: how they are read, and how they are shown."""

from __future__ import annotations

import re
from typing import NamedTuple

from spacy.tokens import Doc

from ..lm.language_model import BLANK
from ..pipeline.segments import sentence_bounds

WRITTEN = re.compile(r"(?<![^\W_])_{3,}(?![^\W_])")
BLANK_WORD = "\ue000"  # for the tokenizer: neither punctuation nor part of any word
CLOSING, OPENING = r"[.,;:!?)\]”’]", r"[(\[“‘]"
PADDED = re.compile(  # the spaces that `prepare` put in
    f"(?<={BLANK}) (?={CLOSING})|^ (?={CLOSING})|(?<={OPENING}) (?={BLANK}|$)"
)


def prepare(text: str) -> str:
    """A text on one line, with each blank made a word of its own; lone surrogates become ``?``."""
    text = text.encode("utf-8", "replace").decode("utf-8")  # a command line may hold anything
    return " ".join(WRITTEN.sub(f" {BLANK_WORD} ", text).split())


def shown(doc: Doc, start: int, end: int) -> str:
    """A part of a Doc as it was written, blanks included."""
    return PADDED.sub("", doc[start:end].text_with_ws.replace(BLANK_WORD, BLANK))


def around(doc: Doc, i: int, start: int, end: int) -> tuple[str, str, str]:
    """A Doc's token with the text on its left and on its right, between two tokens."""
    after = doc[i].whitespace_ + shown(doc, i + 1, end)
    return shown(doc, start, i), shown(doc, i, i + 1).rstrip(), PADDED.sub("", after)


class Blank(NamedTuple):
    """A blank in its sentence.

    Attributes:
        left, right: the text on both sides of it, as it was written.
        words: all of the sentence, blanks among them.
        place: its index among these.
    """

    left: str
    right: str
    words: list[str]
    place: int


def find_blanks(doc: Doc) -> list[Blank]:
    """The blanks of a Doc that was made of a prepared text."""
    tokens, bounds = sentence_bounds(doc)
    found = []
    for start, end in bounds:
        inside = tokens[start:end].tolist()
        texts = [doc[i].text for i in inside]
        words = [BLANK if text == BLANK_WORD else text for text in texts]
        for place, i in enumerate(inside):
            if texts[place] == BLANK_WORD:
                left, _, right = around(doc, i, inside[0], inside[-1] + 1)
                found.append(Blank(left, right.rstrip(), words, place))
    return found
