"""Clear errors for files that cannot be read; files and directories written whole or not at all;
and locks of files."""

from __future__ import annotations

import configparser
import errno
import json
import lzma
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from pickle import UnpicklingError
from tempfile import mkdtemp
from typing import IO, Any, AnyStr
from zipfile import BadZipFile

from safetensors import SafetensorError

WORKPLACE = ".spacy-elmo-new-"  # begins the names of directories in which files are written
OLD = ".{}.spacy-elmo-old"  # name of a directory while it is replaced; what has it may be removed
MAX_TEXT = 2**24  # characters of a JSON file or a document; in Python, JSON takes much more memory
OF_THE_DISK = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)  # errors that name no file
# Errors of missing and damaged files; PyTorch and h5py raise RuntimeErrors. Others, as an
# AttributeError, are faults of the code.
DAMAGED: tuple[type[Exception], ...] = (
    OSError, ValueError, KeyError, EOFError, RuntimeError, zlib.error, lzma.LZMAError, BadZipFile,
    UnpicklingError, configparser.Error, SafetensorError,
)  # fmt: skip
OF_THE_MACHINE = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)  # errors that no file is to blame for


@contextmanager
def reading(what: str, file: Path | str, *others: type[Exception]) -> Iterator[None]:
    """Turn what is wrong with a file into one error that names it; no other error is changed.

    Args:
        what: the kind of file, for the error message.
        file: its path, or its name in messages.
        others: errors of the library that reads it, beside `DAMAGED`.

    Raises:
        ValueError: it is missing, damaged or of another format; or it is a pipe or a device, from
            which reading may never end.
    """
    try:
        if isinstance(file, Path) and file.exists() and not file.is_file():
            raise ValueError("it is not a regular file")
        yield
    except (*DAMAGED, *others) as error:
        is_full = any(sign in str(error) for sign in ("out of memory", "DefaultCPUAllocator"))
        if is_full or getattr(error, "errno", None) in OF_THE_MACHINE:
            raise
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
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


def read_text(path: Path) -> str:
    """The text of a small UTF-8 file.

    Raises:
        ValueError: it is not UTF-8, or too large.
    """
    with path.open(encoding="utf-8") as file:
        return read_whole(file, MAX_TEXT)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object.

    Raises:
        ValueError: it cannot be read, or is something else.
    """
    with reading("the JSON file", path):
        data = json.loads(read_text(path))
        members(data)
    return data


def members(data: Any, **kinds: type) -> list[Any]:
    """Some members of an object that was read, each of the type that is given for its name.

    Raises:
        ValueError: it is no object, or a member is missing or of another type.
    """
    if not isinstance(data, dict):
        raise ValueError(f"expected an object, found {type(data).__name__}")
    for name, kind in kinds.items():
        if not isinstance(found := data.get(name), kind):
            raise ValueError(f"{name} is of the type {type(found).__name__}, not {kind.__name__}")
    return [data[name] for name in kinds]


def write_json(path: Path, data: Any) -> None:
    """Write indented JSON, whole or not at all."""
    write_text(path, json.dumps(data, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(data)


def atomic_file(path: Path) -> AbstractContextManager[Path]:
    """Write a file under a temporary name; it gets its own when all of it is on the disk.

    An existing file is replaced, a link too; if anything fails it stays as it was. Of several
    writers, the last one's stays.

    Raises:
        OSError: it cannot be written. A missing folder is not created: it may have been one that
            is no longer mounted.
    """
    if not path.parent.exists():
        raise FileNotFoundError(f"There is no directory '{path.parent}' to write '{path.name}' to.")
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a directory: name a file to write.")
    return _replacing(path)


@contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Write a directory under a temporary name; it gets its own when all of it is on the disk.

    An existing directory is replaced; if anything fails it stays as it was. A file is not
    replaced. Of several writers, the last one's stays.

    Args:
        path: of the directory; its parents are created, and links in it are followed.

    Yields:
        The temporary directory, empty.

    Raises:
        OSError: it cannot be written, or is a file, or a mount point, which cannot be replaced.
    """
    path = Path(os.path.realpath(path))
    if path.is_file():
        raise FileExistsError(f"'{path}' is a file: name a directory to write.")
    if os.path.ismount(path):
        raise OSError(f"'{path}' is a mount point and cannot be replaced: name a directory in it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _replacing(path) as new:
        new.mkdir()
        yield new


def present_directory(path: Path) -> Path:
    """Find a directory: elsewhere if a process has ended while `atomic_directory` replaced it."""
    real = Path(os.path.realpath(path))
    old = real.parent / OLD.format(real.name)
    return old if old.is_dir() and not path.exists() else path


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """The path's name in a new directory beside it; what is written there replaces the path.

    Two directories cannot be exchanged in one step everywhere, so the old one is renamed first:
    where the process ends just then, `present_directory` finds it. What killed processes have left
    beside the path is removed.
    """
    with ExitStack() as stack:
        with locked(path.parent):  # so that nobody finds a new one that is not locked yet
            for left in path.parent.glob(f"{WORKPLACE}*"):
                with locked(left, wait=False) as is_left:
                    if is_left:
                        shutil.rmtree(left, ignore_errors=True)
            place = Path(mkdtemp(prefix=WORKPLACE, dir=path.parent))
            stack.callback(shutil.rmtree, place, ignore_errors=True)
            stack.enter_context(locked(place))
        new, old = place / path.name, path.parent / OLD.format(path.name)
        try:
            yield new
        except OSError as error:
            if error.errno in OF_THE_DISK and not error.filename:
                error.filename = str(path)
            raise
        for each in filter(Path.is_file, (new, *new.rglob("*"))):
            with open(each, "rb+" if os.name == "nt" else "rb") as file:
                os.fsync(file.fileno())
        with locked(path.parent), ExitStack() as undo:
            if path.is_dir():
                shutil.rmtree(old, ignore_errors=True)
                os.replace(path, old)
                undo.callback(os.replace, old, path)
            os.replace(new, path)
            undo.pop_all()
            shutil.rmtree(old, ignore_errors=True)


@contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[bool | None]:
    """Lock a file or a directory; the lock ends with the process at the latest.

    Yields:
        Whether it is locked; False if another process has locked it. None where it is not there,
        and on Windows and some network file systems, which cannot do that: they keep what killed
        processes leave, and nobody waits.
    """
    with ExitStack() as stack:
        try:
            import fcntl

            file = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
            stack.callback(os.close, file)
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            # Closed alone, it would last in forked processes.
            stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
            is_locked: bool | None = True
        except (ImportError, OSError) as error:
            is_locked = False if isinstance(error, BlockingIOError) else None
        yield is_locked
