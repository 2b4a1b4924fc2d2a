"""How the demo puts things on a terminal: in colour there, plain elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TextIO

from wasabi.printer import Printer
from wasabi.util import color, supports_ansi

NARROW, WIDE = 60, 110  # columns used at the least and at the most
SENSE_COLOURS = ("cyan", "yellow", "pink")
ASCII = str.maketrans(
    {"…": "~", "✔": "+", "✘": "x", "█": "#", "·": "-", "→": ">", "←": "<", "─": "-", "▸": ">"}
)


class Screen:
    """Lines of limited width, written to the standard output.

    Args:
        colour: None for what suits the output: colour on a terminal unless ``NO_COLOR`` is set.
        width: columns, None for those of the terminal.
        file: where to write, the standard output if None.
    """

    def __init__(
        self, colour: bool | None = None, width: int | None = None, file: TextIO | None = None
    ):
        self.file = file or sys.stdout
        self.colour = self._wants_colour() if colour is None else colour
        if width is None:
            width = min(shutil.get_terminal_size((80, 24)).columns, WIDE)
        self.width = max(NARROW, width)
        self.encoding = getattr(self.file, "encoding", None) or "utf-8"

    def _wants_colour(self) -> bool:
        if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            return False
        return self.file.isatty() and supports_ansi()

    @cached_property
    def unicode(self) -> bool:
        """Whether the output can show our marks."""
        try:
            "…✔✘█·→←─▸".encode(self.encoding)
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    @cached_property
    def msg(self) -> Printer:
        """For notes and failures, as everywhere in spaCy's commands."""
        printer = Printer(line_max=self.width)
        printer.show_color = self.colour
        return printer

    def line(self, *parts: str) -> None:
        """Write one line; what the output cannot show is replaced."""
        text = "".join(parts).rstrip()
        if not self.unicode:
            text = text.translate(ASCII)
        print(text.encode(self.encoding, "replace").decode(self.encoding), file=self.file)

    def paint(self, text: str, fg: str | int | None = None, bold: bool = False) -> str:
        """The text in a colour, if there are colours."""
        return color(text, fg=fg, bold=bold) if self.colour else text

    def dim(self, text: str) -> str:
        return self.paint(text, "grey")

    def title(self, text: str) -> None:
        """A heading across the screen."""
        rule = "─" * max(0, self.width - len(text) - 4)
        self.line()
        self.line(self.dim("── "), self.paint(text, bold=True), " ", self.dim(rule))

    def paragraph(self, text: str) -> None:
        """Text in lines that fit."""
        rest = text.split()
        while rest:
            n, length = 0, -1
            while n < len(rest) and (n == 0 or length + 1 + len(rest[n]) <= self.width):
                length += 1 + len(rest[n])
                n += 1
            self.line(" ".join(rest[:n]))
            rest = rest[n:]

    def mark(self, text: str, fg: str | int = "cyan") -> str:
        """The word that matters: in bold colour, or else in brackets."""
        return self.paint(text, fg, bold=True) if self.colour else f"[{text}]"

    def keyword(self, text: tuple[str, str, str], width: int, fg: str | int = "cyan") -> str:
        """A word in its context, the word always at the same place.

        Args:
            text: what is left of the word, the word, what is right of it.
            width: columns at the most.
            fg: the word's colour.
        """
        left, word, right = text
        brackets = 0 if self.colour else 2
        word = clip(word, width // 3)
        left_width = (width - brackets) * 2 // 5
        right_width = width - brackets - left_width - len(word)
        return "".join(
            (
                clip_start(left, left_width).rjust(left_width),
                self.mark(word, fg),
                clip(right.rstrip(), right_width),
            )
        )

    def bar(self, share: float, columns: int) -> str:
        """A bar for a share between 0 and 1."""
        return "█" * round(share * columns)

    def items(self, indent: str, pieces: Sequence[tuple[str, str]]) -> None:
        """Short pieces side by side, in as many lines as it takes; each as (plain, painted)."""
        line, used = [indent], len(indent)
        for plain, painted in pieces:
            if used + len(plain) > self.width and len(line) > 1:
                self.line(*line)
                line, used = [indent], len(indent)
            line += [painted, "  "]
            used += len(plain) + 2
        if len(line) > 1:
            self.line(*line)


def clip(text: str, width: int) -> str:
    """The start of a text, cut between words where possible."""
    if len(text) <= width:
        return text
    cut = text[: max(0, width - 1)]
    space = cut.rfind(" ")
    return (cut[:space] if space > width // 2 else cut) + "…"


def clip_start(text: str, width: int) -> str:
    """The end of a text, cut between words where possible."""
    return clip(text[::-1], width)[::-1]


def sense_colour(senses: Sequence[str], sense: str) -> Any:
    """A colour for each sense of a word."""
    return SENSE_COLOURS[list(senses).index(sense) % len(SENSE_COLOURS)]
