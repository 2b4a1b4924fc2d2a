from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_elmo.util.files import (
    atomic_directory,
    atomic_file,
    naming_errors,
    present_directory,
    write_text,
)


def test_a_file_is_replaced_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_text(path, "one\n")
    with pytest.raises(RuntimeError, match="disk"), atomic_file(path) as temporary:
        temporary.write_text("tw")
        raise RuntimeError("the disk is full")
    with atomic_file(path) as temporary:
        temporary.write_text("two\n")
        assert path.read_text() == "one\n"
    assert path.read_text() == "two\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError) as error, atomic_file(tmp_path / "file.txt") as temporary:
        temporary.symlink_to("/dev/full")
        temporary.write_text("one\n")
    assert str(error.value).endswith(f"No space left on device: '{tmp_path / 'file.txt'}'")


def test_a_missing_folder_is_named_and_not_created(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no directory '.*gone' to write 'file.txt' to"):
        write_text(tmp_path / "gone" / "file.txt", "one\n")
    assert not list(tmp_path.iterdir())


def test_links_are_replaced_not_followed(tmp_path: Path) -> None:
    path, mine = tmp_path / "file.txt", tmp_path / "mine.txt"
    mine.write_text("mine")
    path.symlink_to(mine)
    write_text(path, "one\n")
    assert (mine.read_text(), path.read_text(), path.is_symlink()) == ("mine", "one\n", False)
    assert sorted(tmp_path.iterdir()) == [path, mine]


WRITER = """
import sys
from pathlib import Path
from spacy_elmo.util.files import atomic_directory, atomic_file

for number in range(100):
    with atomic_directory(Path(sys.argv[1]) / "directory") as temporary:
        for name in ("a", "b"):
            (temporary / name).write_text(sys.argv[2])
    with atomic_file(Path(sys.argv[1]) / "file") as temporary:
        temporary.write_text(sys.argv[2])
"""


def test_writers_in_several_processes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, text]) for text in ("one", "two", "three")]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    texts = [(tmp_path / "directory" / name).read_text() for name in ("a", "b")]
    assert texts[0] == texts[1] in ("one", "two", "three")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["directory", "file"]


def write_directory(path: Path, text: str) -> None:
    with atomic_directory(path) as temporary:
        (temporary / "file.txt").write_text(text)


@pytest.mark.parametrize("step", ["write", "first rename", "second rename"])
def test_a_failure_leaves_the_directory_as_it_was(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "directory"
    write_directory(path, "one")
    replace, renames = os.replace, ["first rename", "second rename"]

    def fail(source: Path, target: Path) -> None:
        if renames and renames.pop(0) == step:
            raise RuntimeError("the disk is full")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(RuntimeError, match="disk"), atomic_directory(path) as temporary:
        (temporary / "file.txt").write_text("two")
        if step == "write":
            raise RuntimeError("the disk is full")
    assert (path / "file.txt").read_text() == "one"
    assert list(tmp_path.iterdir()) == [path]


KILLED = """
import os, signal, sys
from pathlib import Path
from spacy_elmo.util.files import atomic_directory

path, step = Path(sys.argv[1]).resolve(), sys.argv[2]
replace = os.replace

def rename(source, target):
    replace(source, target)
    if path == {"between the renames": source, "after them": target}.get(step):
        os.kill(os.getpid(), signal.SIGKILL)

os.replace = rename
with atomic_directory(path) as temporary:
    (temporary / "file.txt").write_text("two")
    if step == "while it writes":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("step", ["while it writes", "between the renames", "after them"])
@pytest.mark.parametrize("then", ["read", "write"])
def test_a_killed_process_loses_no_directory(step: str, then: str, tmp_path: Path) -> None:
    path = tmp_path / "directory"
    write_directory(path, "one")
    killed = subprocess.run([sys.executable, "-c", KILLED, path, step])
    assert killed.returncode == -signal.SIGKILL
    if then == "read":
        before = sorted(tmp_path.iterdir())
        expected = "two" if step == "after them" else "one"
        assert (present_directory(path) / "file.txt").read_text() == expected
        assert sorted(tmp_path.iterdir()) == before
    else:
        write_directory(path, "three")
        assert (path / "file.txt").read_text() == "three"
        assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_not_replaced_by_a_directory(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("mine")
    with pytest.raises(OSError, match=r"file\.txt' is a file: name a directory"):
        write_directory(path, "one")
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError, match="is a directory: name a file"):
        write_text(tmp_path, "mine")


def test_a_link_to_a_directory_stays_one(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    write_directory(target, "one")
    link.symlink_to(target)
    write_directory(link, "two")
    assert link.is_symlink()
    assert (target / "file.txt").read_text() == "two"
    assert sorted(tmp_path.iterdir()) == [link, target]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.EMFILE, "Too many open files"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        AttributeError("'int' object has no attribute 'shape'"),
    ],
)
def test_errors_that_no_file_causes_stay(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, naming_errors("the file", "a.txt", TypeError):
        raise error
    assert raised.value is error


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(errno.EACCES, "Permission denied"),
        KeyError("weights"),
        EOFError(),  # of an empty pickle
        RuntimeError("Unable to open object"),
        TypeError("of the library that reads"),
    ],
)
def test_errors_of_files_name_them(error: Exception) -> None:
    with pytest.raises(ValueError, match=r"Cannot read the file a\.txt: ."):
        with naming_errors("the file", "a.txt", TypeError):
            raise error
