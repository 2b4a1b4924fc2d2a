"""Progress of long work: a bar on a terminal, plain lines in a log file."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

LINE_SECONDS = 30.0  # between plain lines


class ProgressBar:
    """Writes to the standard error stream; a context manager.

    Args:
        unit: what is counted, in the plural.
        total: how many there are, if known.
        done: how many were finished earlier.
        quiet: write nothing.
    """

    def __init__(self, unit: str, total: int | None = None, done: int = 0, quiet: bool = False):
        self.unit, self.total, self.done, self.quiet = unit, total, done, quiet
        self.before, self.began = done, time.monotonic()
        self.next_line = self.began + LINE_SECONDS
        self.bar: Any = None
        if not quiet and sys.stderr.isatty():
            self.bar = make_bar(unit, total, done, unit_scale=True)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def update(self, n: int = 1) -> None:
        """Count n more, and write a line if the last one was long ago."""
        self.done += n
        if self.bar is not None:
            self.bar.update(n)
        elif not self.quiet and time.monotonic() >= self.next_line:
            self.next_line = time.monotonic() + LINE_SECONDS
            print(self.line(), file=sys.stderr, flush=True)

    def line(self) -> str:
        """One line: how far the work is, how fast, and how long it still takes or has taken."""
        seconds = time.monotonic() - self.began
        speed = (self.done - self.before) / max(seconds, 1e-9)
        count, rate = f"{self.done:,}", f"{speed:,.0f} {self.unit}/s"
        if self.total is None:
            return f"{count} {self.unit}, {rate}, {duration(seconds)}"
        left = (self.total - self.done) / max(speed, 1e-9)
        return f"{count} of {self.total:,} {self.unit}, {rate}, {duration(left)} left"


def count_words(sentences: Iterable[list[str]], quiet: bool = False) -> Iterator[list[str]]:
    """Pass sentences on unchanged, and show how many words they have."""
    with ProgressBar("words", quiet=quiet) as progress:
        for words in sentences:
            yield words
            progress.update(len(words))


def make_bar(unit: str, total: int | None, done: int, unit_scale: bool = False) -> Any:
    """A tqdm bar, or None if tqdm is not installed: pretraining runs without it."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, initial=done, unit=f" {unit}", unit_scale=unit_scale, smoothing=0.05)


def duration(seconds: float) -> str:
    """Hours, minutes and seconds, as in 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
