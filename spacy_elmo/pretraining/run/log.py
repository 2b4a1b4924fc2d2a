"""The log of a run: a JSON object per line, each with the step after which it was written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ...util.files import reading, write_text
from ..config import Entries

LOG = "log.jsonl"


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
        file: the open log; None to write none.
        follow: receives the entries of each step.
    """

    def __init__(self, file: IO[str] | None, follow: Callable[[Entries], None] | None):
        self.file, self.follow = file, follow
        self.entries: Entries = []

    def write(self, **entry: Any) -> None:
        """Write an entry."""
        if self.file is not None:
            print(json.dumps(entry), file=self.file, flush=True)
        self.entries.append(entry)

    def end_step(self) -> None:
        """Pass the entries since the last step on to the logger; there may be none."""
        entries, self.entries = self.entries, []
        if self.follow is not None:
            self.follow(entries)


@contextmanager
def open_log(
    path: Path | None, entries: Entries, follow: Callable[[Entries], None] | None = None
) -> Iterator[Log]:
    """A context with a log that begins with some entries; without a path, nothing is written."""
    if path is None:
        yield Log(None, follow)
        return
    write_text(path, "".join(json.dumps(entry) + "\n" for entry in entries))
    with open(path, "a", encoding="utf-8", newline="\n") as file:
        yield Log(file, follow)
