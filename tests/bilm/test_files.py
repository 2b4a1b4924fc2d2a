from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_elmo.bilm.files import atomic_directory, atomic_file, present_directory, write_text
from spacy_elmo.bilm.find_weights import find_weights
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.own_weights import save_bilm
from spacy_elmo.bilm.published.options import from_options

from .helpers import make_options


def test_a_file_is_replaced_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_text(path, "one\n")
    with atomic_file(path) as temporary:
        temporary.write_text("two\n")
        assert path.read_text() == "one\n"
    assert path.read_text() == "two\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_text(path, "one\n")
    with pytest.raises(RuntimeError, match="disk"), atomic_file(path) as temporary:
        temporary.write_text("tw")
        raise RuntimeError("the disk is full")
    assert path.read_text() == "one\n"
    assert list(tmp_path.iterdir()) == [path]


def test_links_are_replaced_not_followed(tmp_path: Path) -> None:
    path, mine = tmp_path / "file.txt", tmp_path / "mine.txt"
    mine.write_text("mine")
    path.symlink_to(mine)
    (tmp_path / ".file.txt.part").symlink_to(mine)
    write_text(path, "one\n")
    assert (mine.read_text(), path.read_text(), path.is_symlink()) == ("mine", "one\n", False)
    assert sorted(tmp_path.iterdir()) == [path, mine]


def test_lines_end_alike_everywhere_and_text_is_utf_8(tmp_path: Path) -> None:
    write_text(tmp_path / "file.txt", "안녕\nж\n")
    assert (tmp_path / "file.txt").read_bytes() == "안녕\nж\n".encode()


def write_directory(path: Path, text: str) -> None:
    with atomic_directory(path) as temporary:
        (temporary / "file.txt").write_text(text)


def test_a_directory_is_replaced_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "above" / "directory"
    write_directory(path, "one")
    with atomic_directory(path) as temporary:
        assert list(temporary.iterdir()) == []
        (temporary / "other.txt").write_text("two")
        assert (path / "file.txt").read_text() == "one"
    assert [file.name for file in path.iterdir()] == ["other.txt"]
    assert list(path.parent.iterdir()) == [path]


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
from spacy_elmo.bilm.files import atomic_directory

path, step = Path(sys.argv[1]), sys.argv[2]
replace = os.replace

def rename(source, target):
    replace(source, target)
    if step == "between the renames":
        os.kill(os.getpid(), signal.SIGKILL)

os.replace = rename
with atomic_directory(path) as temporary:
    (temporary / "file.txt").write_text("two")
    if step == "while it writes":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("step", ["while it writes", "between the renames"])
@pytest.mark.parametrize("then", ["read", "write"])
def test_a_killed_process_loses_no_directory(step: str, then: str, tmp_path: Path) -> None:
    path = tmp_path / "directory"
    write_directory(path, "one")
    killed = subprocess.run([sys.executable, "-c", KILLED, path, step])
    assert killed.returncode == -signal.SIGKILL
    if then == "read":
        before = sorted(tmp_path.iterdir())
        assert (present_directory(path) / "file.txt").read_text() == "one"
        assert sorted(tmp_path.iterdir()) == before
    else:
        write_directory(path, "three")
        assert (path / "file.txt").read_text() == "three"
        assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_weights_are_found_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "directory"
    with atomic_directory(path) as temporary:
        save_bilm(BiLM(from_options(make_options())), temporary)
    subprocess.run([sys.executable, "-c", KILLED, path, "between the renames"])
    assert not path.exists()
    assert find_weights(path).load().config.width == 10


def test_a_file_is_not_replaced_by_a_directory(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("mine")
    with pytest.raises(OSError):
        write_directory(path, "one")
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_to_a_directory_stays_one(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    write_directory(target, "one")
    link.symlink_to(target)
    write_directory(link, "two")
    assert link.is_symlink()
    assert (target / "file.txt").read_text() == "two"
    assert sorted(tmp_path.iterdir()) == [link, target]
