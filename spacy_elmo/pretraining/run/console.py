"""What a run prints: a progress bar on a terminal if tqdm is installed, else plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...util.progress import LINE_SECONDS, duration, make_bar


class Console:
    """Prints to the standard error stream.

    Args:
        quiet: print nothing.
    """

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self.bar: Any = None

    def print(self, text: str) -> None:
        """A message, above the bar if there is one."""
        if self.bar is not None:
            self.bar.write(text, file=sys.stderr)
        elif not self.quiet:
            print(text, file=sys.stderr, flush=True)

    @contextmanager
    def steps(self, total: int, done: int) -> Iterator[None]:
        """A context in which the remaining steps are taken; `done` of `total` are."""
        self.total, self.done, self.began = total, done, time.monotonic()
        self.next_line = 0.0
        if not self.quiet and sys.stderr.isatty():
            self.bar = make_bar("steps", total, done)
        try:
            yield
        finally:
            if self.bar is not None:
                self.bar.close()
                self.bar = None

    def step(self) -> None:
        """One more step has been taken."""
        if self.bar is not None:
            self.bar.update()

    def show(self, step: int, loss: float, speed: float) -> None:
        """The state after a step: mean loss since it was last shown, and words per second."""
        now = time.monotonic() - self.began
        if self.bar is not None:
            self.bar.set_postfix_str(f"loss {loss:.3f}, {speed:,.0f} words/s")
        elif step == self.total or now >= self.next_line:
            self.next_line = now + LINE_SECONDS
            left = now / max(1, step - self.done) * (self.total - step)
            self.print(
                f"step {step:,} of {self.total:,}: loss {loss:.3f}, {speed:,.0f} words/s, "
                f"{duration(left)} left"
            )
