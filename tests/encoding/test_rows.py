"""Corpora as rows."""

from __future__ import annotations

import gzip
import json
import math
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin

from spacy_elmo.encoding.block import Block, plain_ids
from spacy_elmo.encoding.rows import RowFiles
from spacy_elmo.text.shards import write_meta, write_shards

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
    chunks = list(RowFiles(str(path), tokenized).chunks(n_tokens))
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


@pytest.mark.parametrize("name", ["a.jsonl", "A.JSONL", "a.ndjson"])
def test_a_row_for_each_line_of_json(tmp_path: Path, name: str) -> None:
    texts = ["Two lines.\nOne row.", "", "Last"]
    path = tmp_path / name
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    assert rows(path) == ([0, 1, 2], texts)


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
        ({"text": [1]}, r"a.parquet: the column 'text' has 1; expected strings"),
        ({"tokens": ["a b"]}, "'tokens' has 'a b'; expected lists of strings"),
        ({"tokens": [[1]]}, r"'tokens' has \[1\]; expected lists of strings"),
        ({"tokens": [["a", None]]}, r"has \['a', None\]; expected lists of strings"),
    ]:
        parquet.write_table(pa.table(column), path)
        with pytest.raises(ValueError, match=message):
            rows(path)
    parquet.write_table(pa.table({"text": pa.array([b"\xc3("]).view(pa.utf8())}), path)
    with pytest.raises(ValueError, match=r"the Parquet file .*a.parquet: 'utf-8' codec"):
        rows(path)
    path.write_bytes(b"PAR1 but not really")
    with pytest.raises(ValueError, match=r"Cannot read the Parquet file .*a.parquet"):
        rows(path)


def write_parquet(path: Path, ids: Any, **columns: Any) -> Any:
    """A Parquet file with these ids, and what is read of it again."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"id": ids, "text": ["A text"] * len(ids), **columns}), path)
    return parquet.read_table(path)


TYPES = [
    ("int32", [-1, None, 2**31 - 1], "int64", None),
    ("uint8", [0, 255, None], "int64", None),
    ("uint64", [0, None, 2**64 - 1], "uint64", None),
    ("float64", [0.5, None, math.nan, math.inf], "double", [0.5, None, None, None]),
    ("string", ["\u00fc", None, "", "7"], "string", None),
    ("bool", [True, None], "string", ["True", None]),
    ("binary", [b"\xff\x00", None, b""], "string", ["ff00", None, ""]),
    ("date32", [date(2024, 2, 29), None], "string", ["2024-02-29", None]),
    ("timestamp[ns]", [1, None], "string", ["1970-01-01 00:00:00.000000001", None]),
    ("time64[us]", [time(1, 2, 3), None], "string", ["01:02:03.000000", None]),
    ("null", [None, None], "string", None),
]


@pytest.mark.parametrize(("name", "ids", "plain", "expected"), TYPES, ids=[t[0] for t in TYPES])
@pytest.mark.parametrize("is_dictionary", [False, True])
def test_types_of_ids(
    tmp_path: Path, name: str, ids: list, plain: str, expected: list | None, is_dictionary: bool
) -> None:
    """JSON holds them, in memory and in parts; nulls are no row numbers."""
    pa = pytest.importorskip("pyarrow")
    array = pa.array(ids, pa.type_for_alias(name))
    if is_dictionary and name != "null":  # there are no such dictionaries in Parquet
        array = array.dictionary_encode()
    check_ids(tmp_path, array, plain, ids if expected is None else expected)


@given(
    st.one_of(
        st.lists(st.none() | each)
        for each in (st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(), st.binary())
    )
)
def test_any_ids(ids: list[Any]) -> None:
    """Different ones stay different, whatever is null stays null, and JSON holds them."""
    pa = pytest.importorskip("pyarrow")
    array = pa.array(ids)
    found, id_type = plain_ids(array)
    is_null = [id is None or (isinstance(id, float) and not math.isfinite(id)) for id in ids]
    assert [id is None for id in found] == is_null
    assert len(set(found) - {None}) == len(
        {i for i, no in zip(ids, is_null, strict=True) if not no}
    )
    block = Block(found, [[] for _ in ids], np.empty((0, 4)), id_type=id_type)
    assert block.to_arrow()["id"].to_pylist() == json.loads(json.dumps(found, allow_nan=False))


def test_ids_that_are_uuids_decimals_and_times_of_a_zone(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    numbers = pa.array([Decimal("1.50"), None], pa.decimal128(10, 2))
    check_ids(tmp_path, numbers, "string", ["1.50", None])
    times = pa.array([0, None], pa.timestamp("ms", "UTC"))
    check_ids(tmp_path, times, "string", ["1970-01-01 00:00:00.000Z", None])
    if not hasattr(pa, "uuid"):
        pytest.skip("this version of pyarrow has no UUIDs")
    name = UUID(int=1)
    check_ids(tmp_path, pa.array([name.bytes, None], pa.uuid()), "string", [str(name), None])


def check_ids(folder: Path, array: Any, plain: str, expected: list[Any]) -> None:
    write_parquet(folder / "a.parquet", array)
    [chunk] = RowFiles(str(folder)).chunks(1000)
    assert (chunk.ids, chunk.id_type) == (expected, plain)
    assert json.loads(json.dumps(chunk.ids, allow_nan=False)) == chunk.ids


def test_ids_of_several_files(tmp_path: Path) -> None:
    """Of one type in all, or in none: row numbers could be ids of other rows."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    write_parquet(tmp_path / "a.parquet", pa.array([3, None], pa.int16()))
    write_parquet(tmp_path / "b.parquet", pa.array([1], pa.int64()))
    assert rows(tmp_path)[0] == [3, None, 1]
    write_parquet(tmp_path / "b.parquet", pa.array(["1"]))
    with pytest.raises(ValueError, match=r"a\.parquet' has int64, .*b\.parquet' has string. Give"):
        rows(tmp_path)
    parquet.write_table(pa.table({"text": ["A"]}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet' has int64, .*b\.parquet' has none. Give"):
        rows(tmp_path)
    (tmp_path / "b.parquet").unlink()
    (tmp_path / "b.txt").write_text("A\n")
    with pytest.raises(ValueError, match=r"a\.parquet' has int64, .*b\.txt' has none"):
        rows(tmp_path)
    (tmp_path / "b.txt").unlink()
    write_parquet(tmp_path / "a.parquet", pa.array([[1]]))
    with pytest.raises(ValueError, match=r"a\.parquet: .*'id' has the type list<.*expected text"):
        rows(tmp_path)


def test_docs_keep_what_they_have(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    docs = [
        Doc(nlp.vocab, words=["a.b", "c"], sent_starts=[True, True], tags=["X", "Y"]),
        Doc(nlp.vocab),
        nlp("One. Two three."),
    ]
    DocBin(docs=docs).to_disk(tmp_path / "a.spacy")
    (tmp_path / "b.txt").write_text("A line\n")
    chunks = list(RowFiles(str(tmp_path)).chunks(2))
    assert [chunk.ids for chunk in chunks] == [[0], [1, 2], [3]]
    assert chunks[-1].rows == ["A line"]
    read = [doc for c in chunks[:2] for doc in c.rows.read(spacy.blank("en").vocab)]
    assert [[t.text for t in doc] for doc in read] == [[t.text for t in doc] for doc in docs]
    assert [t.tag_ for t in read[0]] == ["X", "Y"]
    assert [len(list(doc.sents)) for doc in read[:1]] == [2]


def test_words_are_not_empty(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"tokens": [["a", ""]]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet: the column 'tokens' has .*not empty"):
        rows(tmp_path)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"No corpus at .*CoNLL-U"):
        rows(tmp_path)
    (tmp_path / "a.txt").touch()
    assert rows(tmp_path) == ([], [])
    assert len(list(RowFiles(str(tmp_path)).chunks(9))) == 1
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(ValueError, match="jsonl"):
        rows(tmp_path / "a.json")
