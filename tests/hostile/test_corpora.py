"""Damaged corpora, and damaged parts of encoding jobs: one error that names the file."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
import spacy
import srsly
from spacy.tokens import DocBin

from spacy_elmo import encode
from spacy_elmo.encoding.row_files import RowFiles
from spacy_elmo.text import files, readers
from spacy_elmo.text.files import read_lines
from spacy_elmo.text.readers import tokenize_files

from ..pipeline.helpers import write_weights

NESTED = "[" * 100_000


def sentences(path: Path) -> list[list[str]]:
    return list(tokenize_files(spacy.blank("en"), [path], n_process=1))


def test_lines_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_LINE", 1_000)
    path = tmp_path / "shard.txt.gz"
    path.write_bytes(gzip.compress(b"a" * 1_000 + b"\n" + b"a" * 1_001 + b"\n"))
    lines = read_lines(path)
    assert next(lines) == "a" * 1_000
    with pytest.raises(ValueError, match=r"shard\.txt\.gz.*line 2 has more than 1,000 characters"):
        next(lines)


def test_a_damaged_docbin(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    path = tmp_path / "docs.spacy"
    docs = [nlp("Sound."), nlp("Sound."), nlp("Xylophonists.")]
    stored = srsly.msgpack_loads(zlib.decompress(DocBin(docs=docs).to_bytes()))
    stored["strings"].remove("Xylophonists")
    path.write_bytes(zlib.compress(srsly.msgpack_dumps(stored)))
    damaged = r"Cannot read the DocBin .*docs\.spacy: .*E018"
    with pytest.raises(ValueError, match=damaged):
        sentences(path)
    with pytest.raises(ValueError, match=damaged):
        list(RowFiles(str(path)).chunks(2))
    for content in (b"other data", srsly.msgpack_dumps(stored | {"cats": 5})):
        path.write_bytes(zlib.compress(content))
        with pytest.raises(ValueError, match=r"Cannot read the DocBin .*docs\.spacy"):
            sentences(path)


def test_a_docbin_that_unpacks_to_far_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = spacy.blank("en")
    path = tmp_path / "docs.spacy"
    data = DocBin(docs=[nlp("The same. ")] * 20_000).to_bytes()
    path.write_bytes(data)
    assert len(sentences(path)) == 20_000
    monkeypatch.setattr(readers, "MAX_UNPACKED", 1_000)
    monkeypatch.setattr(readers, "MAX_PACKED_RATIO", 10)
    most = 1_000 + 10 * len(data)
    with pytest.raises(ValueError, match=rf"docs\.spacy: it unpacks to more than {most:,} bytes"):
        sentences(path)


@pytest.mark.parametrize(
    "content", ["", NESTED, "[]", '{"settings": 5}', '{"settings": {}, "n_rows": 1}']
)
def test_a_damaged_description_of_a_job(tmp_path: Path, content: str) -> None:
    weights, out = str(write_weights(tmp_path / "weights")), tmp_path / "out.npy"
    (tmp_path / "texts.txt").write_text("A text.\n")
    encode(tmp_path / "texts.txt", out, weights=weights)
    Path(f"{out}.json").write_text(content)
    with pytest.raises(ValueError, match=r"out\.npy\.json"):
        encode(tmp_path / "texts.txt", out, weights=weights, resume=True)
