"""The files, read by the libraries that they are for."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spacy_elmo
from spacy_elmo import Encoder
from spacy_elmo.encoding import row_files
from spacy_elmo.encoding.formats import to_arrow
from spacy_elmo.encoding.rows import EncodedRows

from ..pipeline.helpers import TEXTS, WIDTH


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return path


def encode(corpus: Path, weights: str, name: str, **settings: Any) -> tuple[Path, Any]:
    """The file, and what should be in it."""
    out = corpus.parent / name
    summary = spacy_elmo.encode(corpus, out, weights=weights, **settings)
    expected = Encoder(weights, **settings).encode(TEXTS)
    assert summary == (len(TEXTS), len(expected.vectors))
    return out, expected


@pytest.mark.parametrize(("layers", "dtype"), [("mix", "float16"), ("all", "float32")])
def test_parquet(corpus: Path, weights: str, layers: str, dtype: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out, expected = encode(corpus, weights, "out.parquet", layers=layers, dtype=dtype)
    table = parquet.read_table(out)
    assert table.column_names == ["id", "tokens", "vectors"]
    assert table["id"].to_pylist() == list(range(len(TEXTS)))
    assert table["tokens"].to_pylist() == expected.tokens
    found = [np.array(row, dtype) for row in table["vectors"].to_pylist() if row]
    assert np.array_equal(np.concatenate(found), expected.vectors)


@pytest.mark.parametrize("level, column", [("sentences", "sentences"), ("documents", "text")])
def test_columns_are_named_by_the_level(
    corpus: Path, weights: str, level: str, column: str
) -> None:
    """The text of a document is no list."""
    parquet = pytest.importorskip("pyarrow.parquet")
    out, expected = encode(corpus, weights, "out.parquet", level=level)
    table = parquet.read_table(out)
    assert table.column_names == ["id", column, "vectors"]
    assert table[column].to_pylist() == (TEXTS if level == "documents" else expected.tokens)
    found = [np.array(row, "float32") for row in table["vectors"].to_pylist() if row]
    assert np.array_equal(np.concatenate(found), expected.vectors)
    encode(corpus, weights, "out.npy", level=level)
    lines = (corpus.parent / "out.tokens.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)[column] for line in lines] == table[column].to_pylist()
    assert np.array_equal(np.load(corpus.parent / "out.npy"), expected.vectors)


@pytest.fixture
def labelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For several parts, the first of which has nulls and no number with a point."""
    monkeypatch.setattr(row_files, "MAX_ROWS", 2)
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


LABELS = [None, None, "x", None, "안녕"]
ROWS = [
    {"id": f"r{i}", "text": "A b. C", "label": label, "score": score, "many": [i, i], "m": {"n": i}}
    for i, (label, score) in enumerate(zip(LABELS, [1, 2, 3.5, None, 4], strict=True))
]


@pytest.mark.parametrize("n_process", [1, 2])
@pytest.mark.parametrize("level", ["tokens", "documents"])
def test_columns_are_kept(labelled: Path, weights: str, level: str, n_process: int) -> None:
    """With one type in all parts. An id takes the place of the numbers."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    out, settings = labelled.parent / "out.parquet", {"weights": weights, "level": level}
    keep = ["id", "label", "score", "many", "m"]
    spacy_elmo.encode(labelled, out, keep=keep, n_process=n_process, **settings)
    assert len(list(out.iterdir())) == 3
    table = parquet.read_table(out)
    column = "text" if level == "documents" else "tokens"
    assert table.column_names == ["id", column, "vectors", "label", "score", "many", "m"]
    for name in keep:
        assert table[name].to_pylist() == [row[name] for row in ROWS]
    assert table.schema.field("label").type == pyarrow.string()
    assert table.schema.field("score").type == pyarrow.float64()
    spacy_elmo.encode(labelled, labelled.parent / "out.npy", keep="score, id", **settings)
    lines = (labelled.parent / "out.tokens.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"id": row["id"], column: own, "score": row["score"]}
        for row, own in zip(ROWS, table[column].to_pylist(), strict=True)
    ]
    plain = parquet.read_table(out)["vectors"].to_pylist()
    spacy_elmo.encode(labelled, labelled.parent / "plain.parquet", **settings)
    assert parquet.read_table(labelled.parent / "plain.parquet")["vectors"].to_pylist() == plain


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_of_other_tables_are_kept(tmp_path: Path, weights: str, suffix: str) -> None:
    """A number of CSV is a text; Parquet has types of its own."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    values = ["7", "08"]
    if suffix == ".parquet":
        values = [date(2020, 1, 2), None]
        table = pyarrow.table({"day": values, "text": ["A b", "C"]})
        parquet.write_table(table, tmp_path / "a.parquet")
    else:
        (tmp_path / "a.csv").write_text("day,text\n7,A b\n08,C\n")
    for name in ("out.parquet", "out.npy"):
        spacy_elmo.encode(tmp_path / f"a{suffix}", tmp_path / name, weights=weights, keep="day")
    assert parquet.read_table(tmp_path / "out.parquet")["day"].to_pylist() == values
    lines = (tmp_path / "out.tokens.jsonl").read_text(encoding="utf-8").splitlines()
    shown = values if suffix != ".parquet" else ["2020-01-02", None]
    assert [json.loads(line)["day"] for line in lines] == shown


def test_columns_that_cannot_be_kept(labelled: Path, weights: str) -> None:
    """Which is known before anything is encoded, and nothing is left."""
    mixed = [{"text": "A", "x": 1, "y": 2**70, "z": {}}, {"text": "b", "x": "c", "y": 2, "z": {}}]
    labelled.write_text("".join(json.dumps(row) + "\n" for row in mixed * 3))
    for keep, name, message in [
        ("x", "out.parquet", "Cannot keep the column 'x': "),
        ("y", "out.parquet", "Cannot keep the column 'y': "),
        ("z", "out.parquet", "Cannot keep the column 'z': "),
        ("id", "out.npy", "no column 'id'; there are: text, x, y, z"),
        ("vectors", "out.npy", "column 'vectors': the output has one of its own"),
        ("text", "out.npy", "column 'text': the output has one of its own"),
    ]:
        with pytest.raises(ValueError, match=message):
            spacy_elmo.encode(
                labelled, labelled.parent / name, weights=weights, keep=keep, level="documents"
            )
    assert list(labelled.parent.iterdir()) == [labelled]


def test_more_floats_than_32_bits_count() -> None:
    pa = pytest.importorskip("pyarrow")
    rows = EncodedRows(range(2), [["x", "y"], ["z"]], np.zeros((3, 4), "float16"))
    kind = pa.large_list(pa.large_list(pa.float16()))  # whose offsets have 64
    assert to_arrow(rows).schema.field("vectors").type == kind


@pytest.mark.slow
def test_parquet_in_other_libraries(corpus: Path, weights: str) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    out, expected = encode(corpus, weights, "out.parquet")
    rows = list(expected)
    frame = pandas.read_parquet(out)
    for (_, tokens, vectors), row in zip(rows, frame.itertuples(), strict=True):
        assert list(row.tokens) == tokens
        assert np.array_equal(np.array(list(row.vectors)).reshape(-1, WIDTH), vectors)
    exploded = frame.explode(["tokens", "vectors"]).dropna()
    assert np.array_equal(np.stack(exploded["vectors"]), expected.vectors)
    assert polars.read_parquet(out)["vectors"].to_list()[0] == rows[0][2].tolist()
    query = f"select id, len(tokens), len(vectors) from '{out}/*.parquet' order by id"
    found = duckdb.sql(query).fetchall()
    assert found == [(id, len(tokens), len(tokens)) for id, tokens, _ in rows]


@pytest.mark.parametrize("layers", ["mix", "top", "all"])
def test_npy(corpus: Path, weights: str, layers: str) -> None:
    out, expected = encode(corpus, weights, "out.npy", layers=layers)
    vectors = np.load(out, mmap_mode="r")
    offsets = np.load(corpus.parent / "out.offsets.npy")
    assert np.array_equal(vectors, expected.vectors) and vectors.dtype == np.float32
    assert offsets.tolist() == expected.offsets.tolist()
    lines = (corpus.parent / "out.tokens.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["tokens"] for line in lines] == expected.tokens


def test_empty_corpora(tmp_path: Path, weights: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "empty.txt").touch()
    for name in ("out.npy", "out.parquet"):
        assert spacy_elmo.encode(tmp_path / "empty.txt", tmp_path / name, weights=weights) == (0, 0)
    assert np.load(tmp_path / "out.npy").shape == (0, WIDTH)
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == 0
