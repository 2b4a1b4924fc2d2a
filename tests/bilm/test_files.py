from __future__ import annotations

from pathlib import Path

import pytest

from spacy_elmo.bilm.files import atomic_file, write_text


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


def test_lines_end_alike_everywhere_and_text_is_utf_8(tmp_path: Path) -> None:
    write_text(tmp_path / "file.txt", "안녕\nж\n")
    assert (tmp_path / "file.txt").read_bytes() == "안녕\nж\n".encode()
