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

CONLLU = """\
# sent_id = 1
1-2\tvámonos\t_\t_
1\tvamos\tir\t_
2\tnos\tnosotros\t_

1\tal\t_\t_
1.1\tempty\t_\t_
"""


def rows(
    path: Path, tokenized: bool = False, column: str | None = None, n_tokens: int = 1000
) -> tuple[list[Any], list[Any]]:
    """Ids and rows of all chunks."""
    chunks = list(RowFiles(str(path), tokenized, column).chunks(n_tokens))
    return [i for c in chunks for i in c.ids], [row for c in chunks for row in c.rows]


def test_a_row_for_each_line(text: Path, tmp_path: Path) -> None:
    lines = text.read_text(encoding="utf-8").split("\n")[:-1]
    assert len(lines) == 6
    assert rows(text) == (list(range(6)), lines)
    packed = tmp_path / "windows.txt.gz"
    packed.write_bytes(gzip.compress(text.read_bytes().replace(b"\n", b"\r\n")))
    assert rows(packed)[1] == lines
    # The chunks do not change the rows.
    assert rows(text, n_tokens=3) == rows(text)
    assert len(list(RowFiles(str(text)).chunks(3))) > 2

    (tmp_path / "ends.txt").write_bytes(b"A b.\rC.\r\r\nD\n\nE")
    assert rows(tmp_path / "ends.txt")[1] == ["A b.", "C.", "", "D", "", "E"]


@pytest.mark.parametrize("name", ["A.JSONL", "a.ndjson"])
def test_a_row_for_each_line_of_json(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(
        '{"text": "Two lines.\\nOne row.", "story": "A"}\n{"text": null, "story": ""}\n'
    )
    assert rows(path) == ([0, 1], ["Two lines.\nOne row.", ""])
    assert rows(path, column="story")[1] == ["A", ""]
    path.write_text('{"text": NaN}\n')
    with pytest.raises(
        ValueError, match=r"Line 1 of .* found nan\. A text that is missing is null"
    ):
        rows(path)


def test_a_row_for_each_sentence_of_conllu(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU, encoding="utf-8")
    assert rows(path)[1] == [["vamos", "nos"], ["al"]]
    path.write_text("no columns\n")
    for line in ("no columns", "1 vamos VERB", "1", "1\t\tVERB", "1-2 vamonos"):
        path.write_text(f"# text = a\n{line}\n")
        with pytest.raises(ValueError, match=r"Line 2 of .*a\.conllu has no ID in its first colu"):
            rows(path)
    path.write_text(CONLLU, encoding="utf-8-sig")
    assert rows(path)[1] == [["vamos", "nos"], ["al"]]


def test_shards_are_not_tokenized(tmp_path: Path) -> None:
    sentences = [["don't", "a.b"], ["c"]]
    write_shards(sentences, tmp_path / "shards")
    assert rows(tmp_path / "shards")[1] == ["don't a.b", "c"]  # nothing tells that it is one
    write_meta(tmp_path / "shards", "en")
    assert rows(tmp_path / "shards")[1] == sentences
    path = tmp_path / "words.txt"
    path.write_text("a.b c\n\nd\n")
    assert rows(path, tokenized=True)[1] == [["a.b", "c"], [], ["d"]]
    path.write_text("a.b c\n", encoding="utf-8-sig")
    assert rows(path, tokenized=True)[1] == [["a.b", "c"]]
    (tmp_path / "a.jsonl").write_text('{"text": "a.b c"}\n')
    assert rows(tmp_path / "a.jsonl", tokenized=True)[1] == [["a.b", "c"]]


@pytest.fixture
def parquet(tmp_path: Path) -> Any:
    """Writes a file of columns."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def write(name: str = "a.parquet", **columns: Any) -> Path:
        parquet.write_table(pa.table(columns), tmp_path / name)
        return tmp_path / name

    return write


def test_parquet(parquet: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    assert rows(parquet(id=["x", "y"], text=["A b.", None])) == (["x", "y"], ["A b.", ""])
    assert rows(parquet(text=["no"], tokens=[["a", "b"]])) == ([0], [["a", "b"]])
    texts = pa.array(["a", "b", "a"])
    for column in (texts.dictionary_encode(), texts.cast(pa.string_view())):
        assert rows(parquet(text=column, id=column)) == (["a", "b", "a"], ["a", "b", "a"])
    pairs = pa.array([["a", "b"], ["c", "d"]], pa.list_(pa.string(), 2))
    path = parquet(tokens=pairs, story=["One.", "Two."])
    assert rows(path) == ([0, 1], [["a", "b"], ["c", "d"]])
    assert rows(path, column="story") == ([0, 1], ["One.", "Two."])
    assert rows(parquet(id=pa.array([255, None], pa.uint8()), text=["a", "b"]))[0] == [255, None]


def test_damaged_parquet(parquet: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    for columns, message in [
        ({"words": ["no"]}, r"no column 'tokens' or 'text' in \['words'\]; name one with --col"),
        ({"text": [1]}, r"a.parquet: expected a text, found 1"),
        ({"text": [float("nan")]}, r"found nan\."),
        ({"tokens": [["a", None]]}, r"found \['a', None\]"),
        ({"text": pa.array([b"\xc3("]).view(pa.utf8())}, r"the Parquet file .*: 'utf-8' codec"),
    ]:
        path = parquet(**columns)
        with pytest.raises(ValueError, match=message):
            rows(path)
    path.write_bytes(b"PAR1 but not really")
    with pytest.raises(ValueError, match=r"Cannot read the Parquet file .*a.parquet"):
        rows(path)


def test_ids_of_several_files(parquet: Any) -> None:
    """Of one type in all, or in none: row numbers could be ids of other rows."""
    folder = parquet(id=[3, None], text=["A", "b"]).parent
    parquet("b.parquet", id=[1], text=["A"])
    assert rows(folder)[0] == [3, None, 1]
    for ids, kind in (({"id": ["1"]}, "string"), ({}, "none")):
        parquet("b.parquet", text=["A"], **ids)
        with pytest.raises(ValueError, match=rf"a\.parquet' has int64, .*b\.parquet' has {kind}"):
            rows(folder)


def test_tables(tmp_path: Path) -> None:
    """Of CSV and TSV a column, not the lines."""
    (tmp_path / "a.csv").write_text('id,text\r\n1,"One, ""two""\nlines"\n\n2,\n')
    assert rows(tmp_path / "a.csv") == ([0, 1], ['One, "two"\nlines', ""])
    packed = tmp_path / "b.tsv.gz"
    packed.write_bytes(gzip.compress("\ufeffstory\tid\nA b, c\t1\n".encode()))
    assert rows(packed, column="story") == ([0], ["A b, c"])
    assert rows(packed, tokenized=True, column="story")[1] == [["A", "b,", "c"]]
    (tmp_path / "long.csv").write_text("text\n" + "a " * 200_000)
    assert len(rows(tmp_path / "long.csv")[1][0]) == 400_000
    for content, message in [
        ("id,story\n", r"Cannot read line 1 of .*no column 'text' in \['id', 'story'\]; name one"),
        ("", "no column 'text'"),
        ("text,id\na,b,c\n", r"line 2 of .* there are 3 fields, and 2 in the first line"),
        ('text\n"a', "line 2 of .*unexpected end of data"),
    ]:
        (tmp_path / "c.csv").write_text(content)
        with pytest.raises(ValueError, match=message):
            rows(tmp_path / "c.csv")


def test_docs_keep_what_they_have(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    docs = [
        Doc(nlp.vocab, words=["a.b", "c"], sent_starts=[True, True], tags=["X", "Y"]),
        Doc(nlp.vocab),
        nlp("One. Two three."),
    ]
    DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
    (tmp_path / "b.txt").write_text("A line\n")
    ids, found = rows(tmp_path, n_tokens=2)
    assert ids == [0, 1, 2, 3]
    read = list(make_docs(spacy.blank("en"), found))
    assert [[t.text for t in doc] for doc in read[:3]] == [[t.text for t in doc] for doc in docs]
    assert [t.tag_ for t in read[0]] == ["X", "Y"] and read[3].text == "A line"
    assert len(list(read[0].sents)) == 2


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"No corpus at .*CoNLL-U"):
        rows(tmp_path)
    (tmp_path / "a.txt").touch()
    assert rows(tmp_path) == ([], [])
    assert len(list(RowFiles(str(tmp_path)).chunks(9))) == 1
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(ValueError, match="jsonl"):
        rows(tmp_path / "a.json")
