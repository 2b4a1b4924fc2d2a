"""Texts in the columns of JSONL, CSV, TSV and Parquet."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.text import files
from spacy_elmo.text.files import texts_in

TEXTS = ['A "bank", they said.', "Two\nlines, one\r\nrow", "", "안녕\ttab", " ", "x" * 200_000]


@pytest.fixture(autouse=True)
def field_size_limit() -> Iterator[None]:
    limit = csv.field_size_limit()
    yield
    csv.field_size_limit(limit)


def write(path: Path, columns: dict[str, list[Any]]) -> Path:
    """A table in the format of a suffix, as its users' libraries write it."""
    rows = list(zip(*columns.values(), strict=True))
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)
    elif path.suffix == ".jsonl":
        lines = (json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
        path.write_text("".join(f"{line}\n" for line in lines))
    else:
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writerows([list(columns), *rows])
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".parquet"])
def test_a_column_of_any_table(tmp_path: Path, suffix: str) -> None:
    n = list(map(str, range(len(TEXTS))))
    path = write(tmp_path / f"a{suffix}", {"n": n, "story": TEXTS, "text": TEXTS[::-1]})
    assert list(texts_in(path)) == TEXTS[::-1]
    assert list(texts_in(path, "story")) == TEXTS
    assert list(texts_in(path, "n")) == n
    said = "no column 'txt'; there are: n, story, text. Name one of these (--column)"
    with pytest.raises(ValueError) as error:
        list(texts_in(path, "txt"))
    assert said in str(error.value) and path.name in str(error.value)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_nulls_are_empty_and_numbers_no_texts(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a{suffix}", {"text": ["a", None], "year": [1999, None]})
    assert list(texts_in(path)) == ["a", ""]
    with pytest.raises(ValueError, match=rf"1 of .*a\{suffix}: expected a text, found 1999"):
        list(texts_in(path, "year"))


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_a_text_without_end_is_named(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_LINE", 1000)
    path = write(tmp_path / f"a{suffix}", {"text": ["a" * 900, "a\n" * 501]})
    texts = texts_in(path)
    assert next(texts) == "a" * 900
    with pytest.raises(ValueError, match=rf"a\{suffix}.*(more than 1,000 characters|limit)"):
        list(texts)


def test_rows_of_parquet_are_counted_over_its_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BATCH_ROWS", 2)
    pyarrow = pytest.importorskip("pyarrow")
    texts = [b"a", b"b", b"c", b"\xff", b"d"]
    path = write(tmp_path / "a.parquet", {"text": texts})
    with pytest.raises(ValueError, match=r"Row 1 of .*found b'a'"):
        list(texts_in(path))
    damaged = pyarrow.array(texts).view(pyarrow.string())
    path = write(tmp_path / "b.parquet", {"text": damaged})
    with pytest.raises(ValueError, match=r"Cannot read the table .*b\.parquet: .*utf-8"):
        list(texts_in(path))


def test_csv_of_other_programs(tmp_path: Path) -> None:
    """A byte order mark, other line ends, quotes where none are needed, and empty lines."""
    path = tmp_path / "A.CSV.GZ"
    rows = '"id";"text"\r\n\r\n"1";"a ""b"""\r\n"2";\r\n'.replace(";", ",")
    path.write_bytes(gzip.compress(rows.encode("utf-8-sig")))
    assert list(texts_in(path)) == ['a "b"', ""] and list(texts_in(path, "id")) == ["1", "2"]
    (tmp_path / "a.csv").write_bytes(rows.replace("\r\n", "\r").encode())
    assert list(texts_in(tmp_path / "a.csv", "id")) == ["1", "2"]


@pytest.mark.parametrize(
    "content, message",
    [
        (b"text\n\xff\n", "utf-8"),
        (b"id,text\n1\n", "line 2: 1 fields, where there are 2 columns"),
        (b'id,text\n1,"a\n', "line 2: unexpected end of data"),
        (b"text,text\na,b\n", "2 columns 'text'; there are: text, text"),
    ],
)
def test_a_damaged_table_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ValueError, match=rf"Cannot read the table .*a\.csv: .*{message}"):
        list(texts_in(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    "line", ["3", "{", '{"text": 3}', '{"texts": ""}', '{"text": "Half a pair: \\ud83d"}']
)
def test_a_line_without_a_text_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"text": "a"}}\n{line}\n')
    with pytest.raises(ValueError, match=r"Line 2 of .*a\.jsonl"):
        list(texts_in(tmp_path / "a.jsonl"))
