"""The log of a run: a JSON object per line, each with the step after which it was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...util.files import reading, write_text
from ..config import Entries, Follow

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
