"""Corpora as rows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_elmo.encoding.corpus import Corpus
from spacy_elmo.pretraining.data.shards import write_meta, write_shards

CONLLU = """\
# sent_id = 1
1-2\tvámonos\t_\t_
1\tvamos\tir\t_
2\tnos\tnosotros\t_

1\tal\t_\t_
1.1\tempty\t_\t_
"""


def rows(path: Path, tokenized: bool = False, n_tokens: int = 1000) -> tuple[list[Any], list[Any]]:
    """Ids and rows of all chunks."""
    chunks = list(Corpus(str(path), tokenized).chunks(n_tokens))
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
    assert len(list(Corpus(str(text)).chunks(3))) > 2


def test_a_row_for_each_line_of_json(tmp_path: Path) -> None:
    texts = ["Two lines.\nOne row.", "", "Last"]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    assert rows(path) == ([0, 1, 2], texts)


def test_a_row_for_each_sentence_of_conllu(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU, encoding="utf-8")
    assert rows(path)[1] == [["vamos", "nos"], ["al"]]
    path.write_text("no columns\n")
    with pytest.raises(ValueError, match=r"Line 1 of .*a\.conllu has no ID in its first column"):
        rows(path)


def test_shards_are_not_tokenized(tmp_path: Path) -> None:
    sentences = [["don't", "a.b"], ["c"]]
    write_shards(sentences, tmp_path / "shards")
    assert rows(tmp_path / "shards")[1] == ["don't a.b", "c"]  # nothing tells that it is one
    write_meta(tmp_path / "shards", "en")
    assert rows(tmp_path / "shards")[1] == sentences
    path = tmp_path / "words.txt"
    path.write_text("a.b c\n\nd\n")
    assert rows(path, tokenized=True)[1] == [["a.b", "c"], [], ["d"]]


def test_parquet_with_and_without_ids(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"id": ["x", "y"], "text": ["A b.", None]}), path)
    assert rows(path) == (["x", "y"], ["A b.", ""])
    parquet.write_table(pa.table({"text": ["no"], "tokens": [["a", "b"]]}), path)
    assert rows(path) == ([0], [["a", "b"]])
    texts = pa.array(["a", "b", "a"])
    for column in (texts.dictionary_encode(), texts.cast(pa.string_view())):
        parquet.write_table(pa.table({"text": column}), path)
        assert rows(path) == ([0, 1, 2], ["a", "b", "a"])
    pairs = pa.array([["a", "b"], ["c", "d"]], pa.list_(pa.string(), 2))
    parquet.write_table(pa.table({"tokens": pairs}), path)
    assert rows(path) == ([0, 1], [["a", "b"], ["c", "d"]])
    parquet.write_table(pa.table({"words": ["no"]}), path)
    with pytest.raises(ValueError, match="no column 'text'"):
        rows(path)
    for column, message in [
        ({"text": [1]}, r"column 'text' of .*a.parquet has the type int64; expected strings"),
        ({"tokens": ["a b"]}, "'tokens' .* the type string; expected lists of strings"),
        ({"tokens": [[1]]}, "'tokens' .* expected lists of strings"),
        ({"tokens": [["a", None]]}, "a.parquet has a null"),
    ]:
        parquet.write_table(pa.table(column), path)
        with pytest.raises(ValueError, match=message):
            rows(path)
    parquet.write_table(pa.table({"text": pa.array([b"\xc3("]).view(pa.utf8())}), path)
    with pytest.raises(ValueError, match=r"Cannot read .*a.parquet as Parquet: 'utf-8' codec"):
        rows(path)
    path.write_bytes(b"PAR1 but not really")
    with pytest.raises(ValueError, match=r"Cannot read .*a.parquet as Parquet"):
        rows(path)


def test_docs_keep_what_they_have(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    docs = [
        Doc(nlp.vocab, words=["a.b", "c"], sent_starts=[True, True], tags=["X", "Y"]),
        Doc(nlp.vocab),
        nlp("One. Two three."),
    ]
    DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
    (tmp_path / "b.txt").write_text("A line\n")
    chunks = list(Corpus(str(tmp_path)).chunks(2))
    assert [chunk.ids for chunk in chunks] == [[0], [1, 2], [3]]
    assert chunks[-1].rows == ["A line"]
    read = [doc for c in chunks[:2] for doc in c.rows.read(spacy.blank("en").vocab)]
    assert [[t.text for t in doc] for doc in read] == [[t.text for t in doc] for doc in docs]
    assert [t.tag_ for t in read[0]] == ["X", "Y"]
    assert [len(list(doc.sents)) for doc in read[:1]] == [2]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"No corpus at .*CoNLL-U"):
        rows(tmp_path)
    (tmp_path / "a.txt").touch()
    assert rows(tmp_path) == ([], [])
    assert len(list(Corpus(str(tmp_path)).chunks(9))) == 1
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(ValueError, match="jsonl"):
        rows(tmp_path / "a.json")
