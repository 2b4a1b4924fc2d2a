"""Damaged corpora, and damaged parts of encoding jobs: one error that names the file."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import srsly
from spacy.tokens import DocBin

from spacy_elmo import Encoder, encode
from spacy_elmo.encoding.block import Block
from spacy_elmo.encoding.formats import WRITERS
from spacy_elmo.encoding.rows import RowFiles
from spacy_elmo.senses.occurrences import find_senses
from spacy_elmo.text import readers, shards
from spacy_elmo.text.readers import read_docs, read_paragraphs
from spacy_elmo.text.shards import read_lines

from ..pipeline.helpers import write_weights

NESTED = "[" * 100_000


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return write_weights(tmp_path / "weights")


def test_lines_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "MAX_LINE", 1_000)
    path = tmp_path / "shard.txt.gz"
    path.write_bytes(gzip.compress(b"a" * 1_000 + b"\n" + b"a" * 1_001 + b"\n"))
    lines = read_lines(path)
    assert next(lines) == "a" * 1_000
    with pytest.raises(ValueError, match=r"shard\.txt\.gz.*line 2 has more than 1,000 characters"):
        next(lines)


def test_half_a_surrogate_pair(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "Fine."}\n{"text": "Not \\ud83d fine."}\n')
    lines = read_paragraphs(path)
    assert next(lines) == "Fine."
    with pytest.raises(ValueError, match=r"Line 2 of .*texts\.jsonl is not .*surrogates"):
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
        list(read_docs(spacy.blank("en"), path))
    first, second, third = RowFiles(str(path)).chunks(2)
    assert [doc.text for chunk in (first, second) for doc in chunk.rows.read(nlp.vocab)] == [
        "Sound.", "Sound.",
    ]  # fmt: skip
    with pytest.raises(ValueError, match=damaged):
        Encoder("en_sm").encode(*third)
    with pytest.raises(ValueError, match=damaged):
        find_senses("sound", str(path), quiet=True)
    for damaged in (b"other data", srsly.msgpack_dumps(stored | {"cats": 5})):
        path.write_bytes(zlib.compress(damaged))
        with pytest.raises(ValueError, match=r"Cannot read the DocBin .*docs\.spacy"):
            list(RowFiles(str(path)).chunks(2))


def test_a_docbin_that_unpacks_to_far_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = spacy.blank("en")
    path = tmp_path / "docs.spacy"
    data = DocBin(docs=[nlp("The same. ")] * 20_000).to_bytes()
    path.write_bytes(data)
    assert len(list(read_docs(nlp, path))) == 20_000
    monkeypatch.setattr(readers, "MAX_UNPACKED", 1_000)
    monkeypatch.setattr(readers, "MAX_PACKED_RATIO", 10)
    most = 1_000 + 10 * len(data)
    with pytest.raises(ValueError, match=rf"docs\.spacy: it unpacks to more than {most:,} bytes"):
        next(read_docs(nlp, path))
    monkeypatch.undo()
    path.write_bytes(data + bytes(10))
    with pytest.raises(ValueError, match=r"docs\.spacy: it has more after its end"):
        next(read_docs(nlp, path))


@pytest.fixture
def job(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The output of a job of `encode` that was killed before it joined its parts."""
    out = tmp_path / "out.npy"
    (tmp_path / "texts.txt").write_text("A text.\nAnother.\n")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setitem(WRITERS, "npy", interrupt)
        encode(tmp_path / "texts.txt", out, weights=str(weights))
    return out


def interrupt(*arguments: Any) -> None:
    raise KeyboardInterrupt


def test_a_damaged_part_of_a_job(job: Path, weights: Path) -> None:
    [part] = Path(f"{job}.parts").iterdir()
    sound = part.read_bytes()
    block = Block.load(part)
    block.vectors = block.vectors[1:]
    block.save(part)
    for damaged in (part.read_bytes(), sound[:-30], b"", sound.replace(b"docs.npy", b"dogs.npy")):
        part.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"Cannot read the part, which .*{part.name}"):
            encode(job.parent / "texts.txt", job, weights=str(weights), resume=True)
    part.unlink()
    assert encode(job.parent / "texts.txt", job, weights=str(weights), resume=True).n_rows == 2
    assert len(np.load(job)) == len(block.vectors) + 1


@pytest.mark.parametrize(
    "content", ["", NESTED, "[]", '{"settings": 5}', '{"settings": {}, "n_rows": 1}']
)
def test_a_damaged_description_of_a_job(job: Path, weights: Path, content: str) -> None:
    Path(f"{job}.json").write_text(content)
    with pytest.raises(ValueError, match=r"out\.npy\.json"):
        encode(job.parent / "texts.txt", job, weights=str(weights), resume=True)


def test_a_fault_of_ours_is_not_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = spacy.blank("en")
    DocBin(docs=[nlp("A text.")]).to_disk(tmp_path / "docs.spacy")

    def fault(doc: Any) -> None:
        raise TypeError("a fault")

    monkeypatch.setattr(readers, "sentence_bounds", fault)
    with pytest.raises(TypeError, match=r"^a fault$"):
        list(read_docs(nlp, tmp_path / "docs.spacy"))
