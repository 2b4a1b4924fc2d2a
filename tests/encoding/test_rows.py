"""Corpora as rows."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_elmo.encoding.row_files import RowFiles
from spacy_elmo.encoding.rows import make_docs
from spacy_elmo.text.shards import write_meta, write_shards


def rows(
    path: Path, tokenized: bool = False, column: str | None = None, n_tokens: int = 1000
) -> list[Any]:
    """Rows of all chunks, which are numbered."""
    chunks = list(RowFiles(str(path), tokenized, column).chunks(n_tokens))
    found = [row for chunk in chunks for row in chunk.rows]
    assert [i for chunk in chunks for i in chunk.ids] == list(range(len(found)))
    return found


def test_a_row_for_each_line(text: Path, tmp_path: Path) -> None:
    lines = text.read_text(encoding="utf-8").split("\n")[:-1]
    assert len(lines) == 6
    assert rows(text) == lines
    packed = tmp_path / "windows.txt.gz"
    packed.write_bytes(gzip.compress(text.read_bytes().replace(b"\n", b"\r\n")))
    assert rows(packed) == lines
    # The chunks do not change the rows.
    assert rows(text, n_tokens=3) == rows(text)
    assert len(list(RowFiles(str(text)).chunks(3))) > 2
    (tmp_path / "ends.txt").write_bytes(b"A b.\rC.\r\r\nD\n\nE")
    assert rows(tmp_path / "ends.txt") == ["A b.", "C.", "", "D", "", "E"]


def test_a_row_for_each_line_of_json(tmp_path: Path) -> None:
    path = tmp_path / "A.JSONL"
    path.write_text(
        '{"text": "Two lines.\\nOne row.", "story": "A b"}\n{"text": null, "story": ""}\n'
    )
    assert rows(path) == ["Two lines.\nOne row.", ""]
    assert rows(path, column="story") == ["A b", ""]
    assert rows(path, tokenized=True, column="story") == [["A", "b"], []]
    path.write_text('{"text": NaN}\n')  # as Python writes a null of pandas
    assert rows(path) == [""]


def test_rows_of_tables(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,text\nx,"A b\nc"\ny,\n')
    (tmp_path / "b.jsonl").write_text('{"text": "D e", "id": 3}\n')
    assert rows(tmp_path) == ["A b\nc", "", "D e"]
    assert rows(tmp_path, tokenized=True) == [["A", "b", "c"], [], ["D", "e"]]


def test_shards_are_not_tokenized(tmp_path: Path) -> None:
    sentences = [["don't", "a.b"], ["c"]]
    write_shards(sentences, tmp_path / "shards")
    assert rows(tmp_path / "shards") == ["don't a.b", "c"]  # nothing tells that it is one
    write_meta(tmp_path / "shards", "en")
    assert rows(tmp_path / "shards") == sentences
    path = tmp_path / "words.txt"
    path.write_text("a.b c\n\nd\n", encoding="utf-8-sig")
    assert rows(path, tokenized=True) == [["a.b", "c"], [], ["d"]]


def test_docs_keep_what_they_have(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    docs = [
        Doc(nlp.vocab, words=["a.b", "c"], sent_starts=[True, True], tags=["X", "Y"]),
        Doc(nlp.vocab),
        nlp("One. Two three."),
    ]
    DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
    (tmp_path / "b.txt").write_text("A line\n")
    read = list(make_docs(spacy.blank("en"), rows(tmp_path, n_tokens=2)))
    assert [[t.text for t in doc] for doc in read[:3]] == [[t.text for t in doc] for doc in docs]
    assert [t.tag_ for t in read[0]] == ["X", "Y"] and read[3].text == "A line"
    assert len(list(read[0].sents)) == 2


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No texts at"):
        rows(tmp_path)
    (tmp_path / "a.txt").touch()
    assert rows(tmp_path) == []
    assert len(list(RowFiles(str(tmp_path)).chunks(9))) == 1


@pytest.mark.parametrize("name", ["a.json", "A.XLSX"])
def test_other_formats_are_not_read_as_prose(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("id,text\n")
    with pytest.raises(ValueError, match=rf"{name}' is not text: .*pandas makes JSONL"):
        rows(tmp_path / name)
