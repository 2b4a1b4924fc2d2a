"""The files, read by the libraries that they are for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spacy_elmo
from spacy_elmo import Encoder
from spacy_elmo.encoding.formats import write_part
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


@pytest.mark.parametrize(
    ("settings", "column"),
    [
        ({"dtype": "float16"}, "tokens"),
        ({"layers": "top"}, "tokens"),
        ({"layers": "all"}, "tokens"),
        ({"level": "sentences"}, "sentences"),
        ({"level": "documents"}, "text"),
    ],
)
def test_what_is_in_the_files(
    corpus: Path, weights: str, settings: dict[str, str], column: str
) -> None:
    """The text of a document is no list."""
    parquet = pytest.importorskip("pyarrow.parquet")
    out, expected = encode(corpus, weights, "out.parquet", **settings)
    table = parquet.read_table(out)
    assert table.column_names == ["id", column, "vectors"]
    assert table["id"].to_pylist() == list(range(len(TEXTS)))
    assert table[column].to_pylist() == (TEXTS if column == "text" else expected.tokens)
    dtype = settings.get("dtype", "float32")
    found = [np.array(row, dtype) for row in table["vectors"].to_pylist() if row]
    assert np.array_equal(np.concatenate(found), expected.vectors)
    out, _ = encode(corpus, weights, "out.npy", **settings)
    vectors = np.load(out, mmap_mode="r")
    assert np.array_equal(vectors, expected.vectors) and vectors.dtype == dtype
    if column != "text":
        offsets = np.load(corpus.parent / "out.offsets.npy")
        assert offsets.tolist() == expected.offsets.tolist()
    lines = (corpus.parent / "out.tokens.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)[column] for line in lines] == table[column].to_pylist()


def test_more_floats_than_32_bits_count(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = EncodedRows([["x", "y"], ["z"]], np.zeros((3, 4), "float16"))
    kind = pa.large_list(pa.large_list(pa.float16()))  # whose offsets have 64
    write_part(rows, range(2), tmp_path / "part.parquet")
    assert parquet.read_schema(tmp_path / "part.parquet").field("vectors").type == kind


@pytest.mark.slow
def test_parquet_in_other_libraries(corpus: Path, weights: str) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    out, expected = encode(corpus, weights, "out.parquet")
    vectors = Encoder(weights)(TEXTS)
    frame = pandas.read_parquet(out)
    for tokens, rows, row in zip(expected.tokens, vectors, frame.itertuples(), strict=True):
        assert list(row.tokens) == tokens
        assert np.array_equal(np.array(list(row.vectors)).reshape(-1, WIDTH), rows)
    exploded = frame.explode(["tokens", "vectors"]).dropna()
    assert np.array_equal(np.stack(exploded["vectors"]), expected.vectors)
    assert polars.read_parquet(out)["vectors"].to_list()[0] == vectors[0].tolist()
    query = f"select id, len(tokens), len(vectors) from '{out}/*.parquet' order by id"
    found = duckdb.sql(query).fetchall()
    lengths = map(len, expected.tokens)
    assert found == [(id, length, length) for id, length in enumerate(lengths)]


def test_empty_corpora(tmp_path: Path, weights: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "empty.txt").touch()
    for name in ("out.npy", "out.parquet"):
        assert spacy_elmo.encode(tmp_path / "empty.txt", tmp_path / name, weights=weights) == (0, 0)
    assert np.load(tmp_path / "out.npy").shape == (0, WIDTH)
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == 0
