"""What a run says: messages and progress on the terminal, and its log.

The log has a JSON object per line, each with the step after which it was written.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ...util.files import reading, write_text
from ...util.progress import LINE_SECONDS

LOG = "log.jsonl"
ESTIMATE_STEPS = 3  # of which time and memory are estimated
Entries = list[dict[str, Any]]  # of a log
Follow = Callable[[Entries], object]  # receives the entries of each step


def find_log(path: Path) -> Path:
    """The log of a run, from its directory or from the log itself; it need not exist."""
    return path if path.is_file() else path / LOG


def read_log(path: Path) -> Entries:
    """The entries of a log; none if it is missing. An incomplete last line is left out.

    Raises:
        ValueError: another line is not an entry.
    """
    if not path.exists():
        return []
    with reading("the log", path):
        lines = path.read_text(encoding="utf-8").splitlines()
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            entry["step"] + 0
        except (ValueError, KeyError, TypeError, RecursionError):
            if number == len(lines):
                break  # the run was killed while it wrote this
            raise ValueError(f"Line {number} of the log {path} is not an entry: {line}") from None
        entries.append(entry)
    return entries


class Log:
    """Writes the entries of a log.

    Args:
        path: the file; None to write none.
        entries: those that it begins with.
        follow: receives the entries of each step.
    """

    def __init__(self, path: Path | None, entries: Entries, follow: Follow | None = None):
        self.path, self.follow = path, follow
        self.entries: Entries = []
        if path is not None:
            write_text(path, "".join(json.dumps(entry) + "\n" for entry in entries))

    def write(self, **entry: Any) -> None:
        """Write an entry."""
        self.entries.append(entry)
        if self.path is not None:
            with open(self.path, "a", encoding="utf-8", newline="\n") as file:
                print(json.dumps(entry), file=file)

    def end_step(self) -> None:
        """Pass the entries since the last step on to the logger; there may be none."""
        entries, self.entries = self.entries, []
        if self.follow is not None:
            self.follow(entries)


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
            self.bar = tqdm(total=total, initial=done, unit=" steps", smoothing=0.05)
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


def duration(seconds: float) -> timedelta:
    """Printed as 1:02:03."""
    return timedelta(seconds=round(seconds))


def describe_cost(
    seconds: Sequence[float], n_bytes: int | None, n_steps: int, epoch_steps: int | None
) -> str:
    """One line on what a run will take.

    Args:
        seconds: of its first steps; the very first sets up what the others use, and is ignored.
        n_bytes: of memory; None if unknown.
        n_steps: of the run.
        epoch_steps: of an epoch; None if unknown.
    """
    step_seconds = statistics.median(seconds[1:])
    parts = [f"{duration(n_steps * step_seconds)} for {n_steps:,} steps"]
    if epoch_steps is not None:
        time = duration(epoch_steps * step_seconds)
        parts.insert(0, f"{time} for an epoch of {epoch_steps:,} steps")
    if n_bytes is not None:
        parts.append(f"{n_bytes / 2**20:,.0f} MB of memory")
    return f"About {', '.join(parts)}"
