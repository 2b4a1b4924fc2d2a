"""The log of a run: a JSON object a line, each with the step it was written after."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ...bilm.files import write_text

LOG = "log.jsonl"

Follow = Callable[[dict[str, Any]], None]


def read_log(path: Path) -> list[dict[str, Any]]:
    """The entries of a log; none if it is not there. A last line that is not whole is left out.

    Raises:
        ValueError: another line is not an entry.
    """
    if not path.exists():
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"Cannot read the log {path}: {error}") from error
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            entry["step"] + 0
        except (ValueError, KeyError, TypeError):
            if number == len(lines):
                break  # the run was killed as it wrote this
            raise ValueError(f"Line {number} of the log {path} is not an entry: {line}") from None
        entries.append(entry)
    return entries


class Log:
    """A log that is written on.

    Args:
        file: where to, None for nowhere.
        follow: is told each entry too.
    """

    def __init__(self, file: IO[str] | None, follow: Follow | None = None):
        self.file, self.follow = file, follow

    def step(self, step: int) -> None:
        """A step has been taken: only who follows is told."""
        if self.follow is not None:
            self.follow({"step": step})

    def write(self, **entry: Any) -> None:
        """Write an entry."""
        if self.file is not None:
            print(json.dumps(entry), file=self.file, flush=True)
        if self.follow is not None:
            self.follow(entry)


@contextmanager
def start_log(
    path: Path | None, before: list[dict[str, Any]], follow: Follow | None = None
) -> Iterator[Log]:
    """Open a log that holds some entries, to be written on; or one that is written nowhere."""
    if path is None:
        yield Log(None)
        return
    write_text(path, "".join(json.dumps(entry) + "\n" for entry in before))
    with open(path, "a", encoding="utf-8", newline="\n") as file:
        yield Log(file, follow)
