"""Files and directories that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Write a file under a temporary name; it gets its own when all of it is on the disk.

    A file that was there before is replaced; if anything fails it stays as it was.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        yield temporary
        with open(temporary, "r+b") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text, whole or not at all."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Write a directory under a temporary name; it gets its own when all is written.

    A directory that was there before is replaced; if anything fails it stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as room:
        new, old = Path(room, "new"), Path(room, "old")
        new.mkdir()
        yield new
        if not path.exists():
            os.replace(new, path)
            return
        os.replace(path, old)
        try:
            os.replace(new, path)
        except BaseException:
            os.replace(old, path)
            raise
