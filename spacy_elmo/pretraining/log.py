"""The log of a run: a JSON object per line, with the step of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..util.files import naming_errors, write_text

LOG = "log.jsonl"


def read_log(path: Path) -> list[dict[str, Any]]:
    """Read the entries of a log, none if it is missing. An incomplete last line is left out.

    Args:
        path: the log, or the directory of the run.

    Raises:
        ValueError: another line is no entry.
    """
    path = path / LOG if path.is_dir() else path
    if not path.exists():
        return []
    with naming_errors("the log", path):
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
    """Writes a log.

    Args:
        path: the file; None to write nothing.
        step: the step of the run. Entries of later steps are removed, and those of finished models.
    """

    def __init__(self, path: Path | None, step: int):
        self.path = path
        if path is not None:
            kept = [e for e in read_log(path) if e["step"] <= step and "model" not in e]
            write_text(path, "".join(json.dumps(entry) + "\n" for entry in kept))

    def write(self, **entry: Any) -> None:
        """Write an entry."""
        if self.path is not None:
            with open(self.path, "a", encoding="utf-8", newline="\n") as file:
                print(json.dumps(entry), file=file)
