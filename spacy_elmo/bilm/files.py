"""Clear errors for files that cannot be read; files and directories written atomically."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, AnyStr

if TYPE_CHECKING:
    from importlib.abc import Traversable

MAX_TEXT = 2**24  # characters of a JSON file or a document; in Python, JSON takes much more memory


@contextmanager
def reading(what: str, file: Traversable | str) -> Iterator[None]:
    """Turn whatever is wrong with a file into one error that names it.

    Args:
        what: the kind of file, for the error message.
        file: its path, or its name in messages.

    Raises:
        ValueError: it is missing, damaged or of another format; or it is a pipe or a device, from
            which reading may never end.
    """
    try:
        if isinstance(file, Path) and file.exists() and not file.is_file():
            raise ValueError("it is not a regular file")
        yield
    except Exception as error:  # each library has its own for damaged files
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, FileNotFoundError):
            reason = "there is no such file"
        raise ValueError(f"Cannot read {what} {file}: {reason}") from error


def read_whole(file: IO[AnyStr], most: int) -> AnyStr:
    """All of an open file, unless it is too large.

    Nothing that the file or a zip claims about its size is relied on.

    Args:
        file: opened to read bytes, or text.
        most: bytes or characters.

    Raises:
        ValueError: it has more.
    """
    data = file.read(most + 1)
    if len(data) > most:
        unit = "characters" if isinstance(data, str) else "bytes"
        raise ValueError(f"it has more than {most:,} {unit}")
    return data


def read_text(path: Traversable) -> str:
    """The text of a small UTF-8 file.

    Raises:
        ValueError: it is not UTF-8, or too large.
    """
    with path.open(encoding="utf-8") as file:
        return read_whole(file, MAX_TEXT)


def read_json(path: Traversable) -> dict[str, Any]:
    """A JSON object.

    Raises:
        ValueError: it cannot be read, or is something else.
    """
    with reading("the JSON file", path):
        data = json.loads(read_text(path))
        if not isinstance(data, dict):
            raise ValueError(f"expected an object, found {type(data).__name__}")
    return data


def write_json(path: Path, data: Any) -> None:
    """Write indented JSON, whole or not at all."""
    write_text(path, json.dumps(data, indent=2) + "\n")


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Write a file under a temporary name; it gets its own when all of it is on the disk.

    An existing file is replaced, a link too; if anything fails it stays as it was.
    """
    temporary = path.with_name(f".{path.name}.part")
    temporary.unlink(missing_ok=True)  # of a process that was killed; or a link to somewhere else
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

    An existing directory is replaced; if anything fails it stays as it was. A file is not
    replaced. Two directories cannot be exchanged in one step everywhere, so the old one is renamed
    first: if the process is killed just then, there is none at the path, and the old one lies
    beside it under another name, where `present_directory` finds it. The next `atomic_directory` of
    the path puts it back. Two processes must not write the same path at once.

    Args:
        path: of the directory; its parents are created, and links in it are followed.

    Yields:
        The temporary directory, empty.

    Raises:
        OSError: it cannot be written, or is a mount point, which cannot be replaced.
    """
    path = Path(os.path.realpath(path))
    if os.path.ismount(path):
        raise OSError(f"'{path}' is a mount point and cannot be replaced: name a directory in it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    new, old = _beside(path, "new"), _beside(path, "old")
    _recover(path, old)
    shutil.rmtree(new, ignore_errors=True)  # of a process that was killed while it wrote
    new.mkdir()
    try:
        yield new
        if path.is_dir():
            os.replace(path, old)
        os.replace(new, path)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        _recover(path, old)


def present_directory(path: Path) -> Path:
    """Where a directory is: elsewhere if a process was killed while `atomic_directory` replaced it.

    Nothing is changed on the disk: the process may be at work.
    """
    old = _beside(Path(os.path.realpath(path)), "old")
    return old if old.is_dir() and not path.exists() else path


def _recover(path: Path, old: Path) -> None:
    """Put a directory back, or remove it if the one that replaces it is there."""
    if path.exists():
        shutil.rmtree(old, ignore_errors=True)
    elif old.is_dir():
        os.replace(old, path)


def _beside(path: Path, what: str) -> Path:
    """A name that nothing else has: what it stands for may be removed."""
    return path.parent / f".{path.name}.spacy-elmo-{what}"
