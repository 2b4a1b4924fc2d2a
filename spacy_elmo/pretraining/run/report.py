"""What a run tells its user: a bar on a terminal where tqdm is installed, else plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LINE_SECONDS = 30.0  # between plain lines


class Report:
    """Writes to the standard error stream.

    Args:
        quiet: write nothing.
    """

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self.bar: Any = None

    def say(self, text: str) -> None:
        """A message, above the bar if there is one."""
        if self.quiet:
            return
        if self.bar is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self.bar.write(text, file=sys.stderr)

    @contextmanager
    def steps(self, total: int, done: int) -> Iterator[None]:
        """Steps are being taken within this context; `done` of `total` were before it."""
        self.total, self.done, self.began = total, done, time.monotonic()
        self.last_line = -LINE_SECONDS
        if not self.quiet and sys.stderr.isatty():
            self.bar = make_bar(total, done)
        try:
            yield
        finally:
            if self.bar is not None:
                self.bar.close()
                self.bar = None

    def step(self) -> None:
        """One step more is done."""
        if self.bar is not None:
            self.bar.update()

    def show(self, step: int, loss: float, speed: float) -> None:
        """The state after a step: mean loss since it was last shown, and words per second."""
        if self.bar is not None:
            self.bar.set_postfix_str(f"loss {loss:.3f}, {speed:,.0f} words/s")
            return
        now = time.monotonic() - self.began
        if step == self.total or now - self.last_line >= LINE_SECONDS:
            self.last_line = now
            left = now / max(1, step - self.done) * (self.total - step)
            self.say(
                f"step {step:,} of {self.total:,}: loss {loss:.3f}, {speed:,.0f} words/s, "
                f"{duration(left)} left"
            )


def make_bar(total: int, done: int) -> Any:
    """A tqdm bar, or None where there is PyTorch, NumPy and safetensors alone."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, initial=done, unit="step", smoothing=0.05)


def duration(seconds: float) -> str:
    """Hours, minutes and seconds, as in 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
