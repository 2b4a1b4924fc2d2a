"""The files, read by the libraries that they are for."""

from __future__ import annotations

import errno
import json
import multiprocessing
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin

import spacy_elmo
from spacy_elmo import Encoder
from spacy_elmo.encoding.block import Block
from spacy_elmo.encoding.formats import SUFFIXES, WRITERS, check_format, output_files, write_hdf5
from spacy_elmo.encoding.on_ray import EncodeTable

from ..pipeline.helpers import N_LAYERS, TEXTS, WIDTH

SHAPES = {"mix": (WIDTH,), "top": (WIDTH,), "all": (N_LAYERS, WIDTH)}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return path


def encode(corpus: Path, weights: str, name: str, **settings: Any) -> tuple[Path, Any]:
    """The file, and what should be in it."""
    out = corpus.parent / name
    summary = spacy_elmo.encode(corpus, out, weights=weights, **settings)
    expected = Encoder(weights, **settings).encode(range(len(TEXTS)), TEXTS)
    assert summary == (len(TEXTS), len(expected.vectors))
    return out, expected


@pytest.mark.parametrize("layers", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_parquet(corpus: Path, weights: str, layers: str, dtype: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out, expected = encode(corpus, weights, "out.parquet", layers=layers, dtype=dtype)
    table = parquet.read_table(out)
    assert table.column_names == ["id", "tokens", "vectors"]
    assert table["id"].to_pylist() == list(range(len(TEXTS)))
    assert table["tokens"].to_pylist() == expected.tokens
    values = table["vectors"].combine_chunks()
    for _ in ("rows", *SHAPES[layers]):
        values = values.flatten()
    flat = values.to_numpy()
    assert flat.dtype == dtype
    assert np.array_equal(flat.reshape(-1, *SHAPES[layers]), expected.vectors)


def id_tables() -> list[list[Any]]:
    """The ids of Parquet files, and what is written for them."""
    pa = pytest.importorskip("pyarrow")
    return [
        [pa.array([2**63, None, 1], pa.uint64()), pa.uint64(), [2**63, None, 1]],
        [pa.array([None, None, None], pa.int32()), pa.int64(), [None] * 3],
        [pa.array([b"\x01", None, b""]), pa.string(), ["01", None, ""]],
        [pa.array([1000, 2000, None], pa.timestamp("ms")), pa.string(), None],
    ]


@pytest.mark.parametrize("number", range(4))
def test_ids(tmp_path: Path, weights: str, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Of one type in the file, though each part has ids of its own: here null, or large."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    ids, id_type, expected = id_tables()[number]
    expected = expected or ["1970-01-01 00:00:01.000", "1970-01-01 00:00:02.000", None]
    parquet.write_table(pa.table({"id": ids, "text": ["A", "b", "c"]}), tmp_path / "in.parquet")
    monkeypatch.setattr("spacy_elmo.encoding.rows.MAX_ROWS", 1)
    for name in ("out.parquet", "out.npy", "out.hdf5"):
        spacy_elmo.encode(tmp_path / "in.parquet", tmp_path / name, weights=weights)
    table = parquet.read_table(tmp_path / "out.parquet")
    assert (table["id"].type, table["id"].to_pylist()) == (id_type, expected)
    lines = (tmp_path / "out.tokens.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == expected
    # As on Ray, whose actors get a table of each part.
    actor = EncodeTable(Encoder(weights))
    for i in range(3):
        part = actor(pa.table({"id": ids[i : i + 1], "text": ["A"]}))
        assert (part["id"].type, part["id"].to_pylist()) == (id_type, expected[i : i + 1])


def test_more_floats_than_32_bits_count() -> None:
    pytest.importorskip("pyarrow")
    width = 2**30 + 1
    try:
        vectors = np.zeros((3, width), dtype="float16")  # which takes no memory until it is read
    except MemoryError:
        pytest.skip("the system does not promise 6 GB of memory")
    column = Block(["a", "b"], [["x", "y"], ["z"]], vectors).to_arrow()["vectors"].chunk(0)
    assert column.offsets.to_pylist() == [0, 2, 3]
    assert column.values.offsets.to_pylist() == [0, width, 2 * width, 3 * width]
    assert len(column[1].values) == 1 and len(column[1].values[0].values) == width


@pytest.mark.slow
def test_parquet_in_other_libraries(corpus: Path, weights: str) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    out, expected = encode(corpus, weights, "out.parquet")
    rows = list(expected.rows())
    frame = pandas.read_parquet(out)
    for (_, tokens, vectors), row in zip(rows, frame.itertuples(), strict=True):
        assert list(row.tokens) == tokens
        assert np.array_equal(np.array(list(row.vectors)).reshape(-1, WIDTH), vectors)
    exploded = frame.explode(["tokens", "vectors"]).dropna()
    assert np.array_equal(np.stack(exploded["vectors"]), expected.vectors)
    assert polars.read_parquet(out)["vectors"].to_list()[0] == rows[0][2].tolist()
    found = duckdb.sql(f"select id, len(tokens), len(vectors) from '{out}' order by id").fetchall()
    assert found == [(id, len(tokens), len(tokens)) for id, tokens, _ in rows]


@pytest.mark.parametrize("layers", SHAPES)
def test_hdf5(corpus: Path, weights: str, layers: str) -> None:
    """The layout of AllenNLP's ``elmo`` command."""
    h5py = pytest.importorskip("h5py")
    out, expected = encode(corpus, weights, "out.hdf5", layers=layers)
    with h5py.File(out) as file:
        assert set(file) == {*map(str, range(len(TEXTS))), "sentence_to_index"}
        for id, tokens, vectors in expected.rows():
            found = file[str(id)][...]
            assert found.shape == (*SHAPES[layers][:-1], len(tokens), WIDTH)
            assert np.array_equal(np.moveaxis(found, -2, 0), vectors)
        index = json.loads(file["sentence_to_index"][0])
    assert index == {" ".join(tokens): str(id) for id, tokens, _ in expected.rows()}


def write_limited(out: Path, part: Path, n_bytes: int) -> None:
    """Write where files may have so many bytes; exits with the number of the error."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    try:
        write_hdf5(out, [part])
    except OSError as error:
        sys.exit(error.errno)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and limits")
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_hdf5_where_the_disk_is_full(corpus: Path, weights: str, share: float) -> None:
    pytest.importorskip("h5py")
    out, expected = encode(corpus, weights, "out.hdf5")
    part, limited = corpus.parent / "part.npz", corpus.parent / "limited.hdf5"
    expected.save(part)
    limit = int(share * out.stat().st_size)
    process = multiprocessing.get_context("fork").Process(
        target=write_limited, args=(limited, part, limit)
    )
    process.start()
    process.join()
    assert process.exitcode == (0 if share == 1 else errno.EFBIG)
    assert limited.exists() == (share == 1)
    assert not list(corpus.parent.glob(".*"))


@pytest.mark.parametrize("layers", SHAPES)
def test_npy(corpus: Path, weights: str, layers: str) -> None:
    out, expected = encode(corpus, weights, "out.npy", layers=layers)
    vectors = np.load(out, mmap_mode="r")
    offsets = np.load(corpus.parent / "out.offsets.npy")
    assert np.array_equal(vectors, expected.vectors) and vectors.dtype == np.float32
    assert offsets.tolist() == expected.offsets.tolist()
    lines = (corpus.parent / "out.tokens.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["tokens"] for line in lines] == expected.tokens


def test_docbin(corpus: Path, weights: str) -> None:
    spacy_elmo.encode(corpus, corpus.parent / "out.spacy", weights=weights)
    docs = list(DocBin().from_disk(corpus.parent / "out.spacy").get_docs(spacy.blank("en").vocab))
    expected = Encoder(weights, level="documents")(TEXTS)
    assert [doc.text for doc in docs] == TEXTS
    for doc, vector in zip(docs, expected, strict=True):
        assert np.allclose(doc._.elmo, vector, atol=1e-6)
    # And Docs in again.
    out = corpus.parent / "again.npy"
    spacy_elmo.encode(corpus.parent / "out.spacy", out, weights=weights)
    assert np.array_equal(np.load(out), np.concatenate(Encoder(weights)(TEXTS)))


def test_docs_are_compared_as_those_of_a_pipeline(corpus: Path) -> None:
    spacy_elmo.encode(corpus, corpus.parent / "out.spacy")  # en_sm has statistics
    nlp = spacy.blank("en")
    docs = list(DocBin().from_disk(corpus.parent / "out.spacy").get_docs(nlp.vocab))
    nlp.add_pipe("elmo")
    for doc, expected in zip(docs, nlp.pipe(TEXTS), strict=True):
        assert doc._.elmo.shape == expected._.elmo.shape
        assert np.allclose(doc._.elmo, expected._.elmo, atol=2e-3)  # stored in half precision


def test_empty_corpora(tmp_path: Path, weights: str) -> None:
    (tmp_path / "empty.txt").touch()
    for name in ("out.npy", "out.spacy"):
        assert spacy_elmo.encode(tmp_path / "empty.txt", tmp_path / name, weights=weights) == (0, 0)
    assert np.load(tmp_path / "out.npy").shape == (0, WIDTH)
    parquet = pytest.importorskip("pyarrow.parquet")
    spacy_elmo.encode(tmp_path / "empty.txt", tmp_path / "out.parquet", weights=weights)
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == 0


@given(
    out=st.builds(
        lambda stem, suffix: Path("folder") / f"{stem}{suffix}",
        st.text(st.characters(exclude_characters="/\x00", exclude_categories=["Cs"]), min_size=1),
        st.sampled_from(["", ".csv", ".gz", ".PARQUET", ".", *SUFFIXES]),
    ),
    name=st.sampled_from([None, "csv", *WRITERS]),
)
def test_names_of_output(out: Path, name: str | None) -> None:
    """A format that is named holds; else a known suffix; and anything else is an error."""
    pytest.importorskip("pyarrow"), pytest.importorskip("h5py")
    expected = name or SUFFIXES.get(out.suffix)
    if expected in WRITERS:
        assert check_format(name, out) == expected
        files = output_files(expected, out)
        assert files[0] == out and len(set(files)) == len(files)
        assert {file.parent for file in files} == {out.parent}
    else:
        message = "The format is 'csv'" if name else "The format of 'folder/"
        with pytest.raises(ValueError, match=message):
            check_format(name, out)
