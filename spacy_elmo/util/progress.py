"""Progress of long jobs: a bar on a terminal, plain lines in a log file."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm

LINE_SECONDS = 30.0  # between plain lines


def say(text: str) -> None:
    """Print a message to the standard error stream, above the bars if they are on a terminal."""
    if sys.stderr.isatty():
        tqdm.write(text, file=sys.stderr)
    else:
        print(text, file=sys.stderr, flush=True)


class ProgressBar(tqdm):
    """A progress bar on the standard error stream; a context manager.

    Args:
        unit: plural name of what is counted.
        total: how many there are, if known.
        done: how many an earlier run has finished.
        quiet: write nothing.
    """

    monitor_interval = 0  # no monitor thread, because processes may be forked

    def __init__(self, unit: str, total: int | None = None, done: int = 0, quiet: bool = False):
        self.is_bar = sys.stderr.isatty()
        how: dict[str, Any] = {"total": total, "initial": done, "disable": quiet}
        if not self.is_bar:
            how |= {"mininterval": LINE_SECONDS, "delay": LINE_SECONDS, "miniters": 1}
            how["leave"] = False
        super().__init__(unit=f" {unit}", unit_scale=True, smoothing=0.05, **how)
        self.set_total(total)

    def set_total(self, total: int | None) -> None:
        """Set how many there are, for a job that learns it while it runs."""
        self.total = total
        if not self.is_bar:
            # Not {total}, which tqdm drops if n is larger.
            of, end = ("", "{elapsed}") if total is None else (f" of {total:,}", "{remaining} left")
            self.bar_format = f"{{n:,}}{of}{{unit}}, {{rate_fmt}}, {end}{{postfix}}"

    def __str__(self) -> str:
        """The line; slow steps are shown as ``3.81 s/step``, not tqdm's ``3.81s/ steps``."""
        line, one = super().__str__(), self.unit.strip().removesuffix("s")
        return line.replace(f"s/{self.unit}", f" s/{one}")

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Write the bar, or a plain line with count, rate and remaining time."""
        if self.is_bar:
            super().display(msg, pos)
        elif msg is None:
            print(self, file=sys.stderr, flush=True)
