"""Errors that name a file; atomic writes of files and directories; file locks."""

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

TEMPORARY = ".spacy-elmo-new-"  # prefix of temporary directories, in which files are written
OLD = ".{}.spacy-elmo-old"  # name of a directory that is being replaced
MAX_TEXT = 2**24  # characters in a JSON file or a document; parsed JSON takes much more memory
DISK_ERRORS = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)  # which do not name the file
# What libraries raise for missing and damaged files (PyTorch and h5py RuntimeErrors). Another
# error, such as an AttributeError, is a fault in the code.
DAMAGED: tuple[type[Exception], ...] = (
    OSError, ValueError, KeyError, EOFError, RuntimeError, zlib.error, lzma.LZMAError, BadZipFile,
    UnpicklingError, configparser.Error, SafetensorError,
)  # fmt: skip
MACHINE_ERRORS = (errno.ENOMEM, errno.EMFILE, errno.ENFILE)  # which are no fault of the file


@contextmanager
def naming_errors(what: str, file: Path | str, *others: type[Exception]) -> Iterator[None]:
    """Read a file in a ``with`` block; any error about the file becomes one that names it.

    Args:
        what: the kind of file, for the error message.
        file: its path, or its name for the error message.
        others: errors of the library that reads it, beside `DAMAGED`.

    Raises:
        ValueError: the file is missing, damaged or of another format; or it is a pipe or a device,
            from which reading may never end.
    """
    try:
        if isinstance(file, Path) and file.exists() and not file.is_file():
            raise ValueError("it is not a regular file")
        yield
    except (*DAMAGED, *others) as error:
        is_full = any(sign in str(error) for sign in ("out of memory", "DefaultCPUAllocator"))
        if is_full or getattr(error, "errno", None) in MACHINE_ERRORS:
            raise
        number = getattr(error, "errno", None)  # h5py's own texts are long
        reason = os.strerror(number) if number else str(error) or type(error).__name__
        raise ValueError(f"Cannot read {what} {file}: {reason}") from error


def read_whole(file: IO[AnyStr], most: int) -> AnyStr:
    """Read all of an open file, unless it is too large, whatever size a zip claims for it.

    Args:
        file: a binary file or a text file.
        most: limit in bytes or characters.

    Raises:
        ValueError: the file has more.
    """
    data = file.read(most + 1)
    if len(data) > most:
        unit = "characters" if isinstance(data, str) else "bytes"
        raise ValueError(f"it has more than {most:,} {unit}")
    return data


def read_text(path: Path) -> str:
    """Read a small UTF-8 file.

    Raises:
        ValueError: the file is not UTF-8, or too large.
    """
    with path.open(encoding="utf-8") as file:
        return read_whole(file, MAX_TEXT)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ValueError: the file cannot be read, or has no JSON object.
    """
    with naming_errors("the JSON file", path):
        data = json.loads(read_text(path))
        members(data)
    return data


def members(data: Any, **kinds: type) -> list[Any]:
    """Get members of an object that was read, and check their types.

    Args:
        data: the object.
        kinds: the members' types, by name.

    Raises:
        ValueError: ``data`` is no dict, or a member is missing or of another type.
    """
    if not isinstance(data, dict):
        raise ValueError(f"expected an object, found {type(data).__name__}")
    for name, kind in kinds.items():
        if not isinstance(value := data.get(name), kind):
            raise ValueError(f"{name} is of the type {type(value).__name__}, not {kind.__name__}")
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
    """Write a file in a ``with`` block, whole or not at all.

    The block writes to a temporary path. Then the file replaces an existing file or link; if the
    block fails, that stays as it was. Of several writers, the last one wins.

    Args:
        path: the file's path. A missing parent is not created: it may be a disk that is not
            mounted.

    Yields:
        The temporary path.

    Raises:
        OSError: the file cannot be written.
    """
    if not path.parent.exists():
        raise FileNotFoundError(f"There is no directory '{path.parent}' to write '{path.name}' to.")
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a directory: name a file to write.")
    return _replacing(path)


@contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Write a directory in a ``with`` block, whole or not at all.

    The block writes to a temporary directory. Then that replaces an existing directory; if the
    block fails, the existing one stays as it was. Of several writers, the last one wins.

    Args:
        path: the directory's path. Its parents are created, and links in it are followed.

    Yields:
        The temporary directory, which is empty.

    Raises:
        OSError: the directory cannot be written; or the path is a file, or a mount point, which
            cannot be replaced.
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
    """Find a directory; if a process was killed while replacing it, find the old one."""
    real = Path(os.path.realpath(path))
    old = real.parent / OLD.format(real.name)
    return old if old.is_dir() and not path.exists() else path


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Let a ``with`` block write to a temporary path, then move the result to ``path``.

    Not every system can exchange two directories in one step, so the old one is renamed first: if
    the process is killed just then, `present_directory` finds it. Temporary directories that killed
    processes have left beside the path are removed.
    """
    with ExitStack() as stack:
        with locked(path.parent):  # until the new temporary directory is locked
            for left in path.parent.glob(f"{TEMPORARY}*"):
                with locked(left, wait=False) as is_left:
                    if is_left:
                        shutil.rmtree(left, ignore_errors=True)
            place = Path(mkdtemp(prefix=TEMPORARY, dir=path.parent))
            stack.callback(shutil.rmtree, place, ignore_errors=True)
            stack.enter_context(locked(place))
        new, old = place / path.name, path.parent / OLD.format(path.name)
        try:
            yield new
        except OSError as error:
            if error.errno in DISK_ERRORS and not error.filename:
                error.filename = str(path)
            raise
        for written in filter(Path.is_file, (new, *new.rglob("*"))):
            with open(written, "rb+" if os.name == "nt" else "rb") as file:
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
    """Lock a file or a directory in a ``with`` block.

    Args:
        path: the file or directory.
        wait: wait for a process that has locked it.

    Yields:
        Whether it is locked: False if another process has locked it; None if it does not exist, or
        cannot be locked, as on Windows and some network file systems.
    """
    with ExitStack() as stack:
        try:
            import fcntl

            file = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
            stack.callback(os.close, file)
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            # Closing it would not unlock it in forked processes.
            stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
            is_locked: bool | None = True
        except (ImportError, OSError) as error:
            is_locked = False if isinstance(error, BlockingIOError) else None
        yield is_locked
