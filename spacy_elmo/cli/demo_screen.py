"""The demo's output: coloured on a terminal, plain elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import TextIO

from wasabi.printer import Printer
from wasabi.util import color, supports_ansi

NARROW, WIDE = 60, 110  # smallest and largest number of columns used
COLOURS = ("cyan", "yellow", "pink", "green")  # of senses and groups
ASCII = str.maketrans("…✔✘█·→─▸", "~+x#->->")


class Screen:
    """Lines of limited width, written to the standard output.

    Args:
        colour: None: colour if the output is a terminal and ``NO_COLOR`` is not set.
        width: columns; None: those of the terminal.
        file: where to write; None: the standard output.
    """

    def __init__(
        self, colour: bool | None = None, width: int | None = None, file: TextIO | None = None
    ):
        self.file = file or sys.stdout
        self.colour = wants_colour(self.file) if colour is None else colour
        columns = width or min(shutil.get_terminal_size((80, 24)).columns, WIDE)
        self.width = max(NARROW, columns)
        self.msg = Printer(line_max=self.width)  # warnings and failures, as in spaCy's commands
        self.msg.show_color = self.colour

    def line(self, *parts: str) -> None:
        """Write one line, in ASCII if the output cannot encode it."""
        text = "".join(parts).rstrip()
        encoding = getattr(self.file, "encoding", None) or "utf-8"
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            text = text.translate(ASCII).encode(encoding, "replace").decode(encoding)
        print(text, file=self.file)

    def title(self, text: str, paragraph: str = "") -> None:
        """A heading across the screen, and a paragraph below it."""
        self.line()
        rule = "─" * (self.width - len(text) - 4)
        self.line(self.dim("── "), self.paint(text, bold=True), " ", self.dim(rule))
        if paragraph:
            self.paragraph(paragraph)

    def note(self, text: str) -> None:
        """A remark, set off by an empty line."""
        self.line()
        self.line(self.dim(text))

    def paragraph(self, text: str) -> None:
        """Text, wrapped to the width of the screen."""
        self.line(textwrap.fill(text, self.width, break_on_hyphens=False))

    def paint(self, text: str, fg: str | None = None, bold: bool = False) -> str:
        """The text in a colour, if colours are used."""
        return color(text, fg=fg, bold=bold) if self.colour else text

    def dim(self, text: str) -> str:
        return self.paint(text, "grey")

    def check(self, is_right: bool) -> str:
        """A green tick or a red cross."""
        return self.paint("✔", "green") if is_right else self.paint("✘", "red")

    def mark(self, text: str, fg: str = "cyan") -> str:
        """A highlighted word: bold and coloured, or in brackets."""
        return self.paint(text, fg, bold=True) if self.colour else f"[{text}]"

    def keyword(self, text: tuple[str, str, str], width: int, fg: str = "cyan") -> str:
        """A word in its context; the words of several lines stand below each other.

        Args:
            text: what is left of the word, the word, what is right of it.
            width: largest number of columns.
            fg: colour of the word.
        """
        left, word, right = text
        word = clip(word, width // 3)
        room = width if self.colour else width - 2
        n_left = room * 2 // 5
        start = clip(left[::-1], n_left)[::-1].rjust(n_left)
        return start + self.mark(word, fg) + clip(right.rstrip(), room - n_left - len(word))


def wants_colour(file: TextIO) -> bool:
    """Whether a file is a terminal that should show colours."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return file.isatty() and supports_ansi()


def clip(text: str, width: int) -> str:
    """The start of a text, cut between words where possible."""
    if len(text) <= width:
        return text
    cut = text[: max(0, width - 1)]
    space = cut.rfind(" ")
    return (cut[:space] if space > width // 2 else cut) + "…"
