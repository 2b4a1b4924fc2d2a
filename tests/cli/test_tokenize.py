"""``python -m spacy elmo tokenize``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_elmo.text import readers
from spacy_elmo.text.segments import sentence_bounds
from spacy_elmo.text.shards import Shards

from .helpers import fail, succeed

TEXT = """\
Mr. O'Neill didn't answer.  He looked at the bank (of the river, I mean) -- and left!
"Where's the U.K. bank?" she asked. "Over there..."

One word
Zwei Sätze. 안녕하세요 여러분. 👩‍👩‍👧 play\t\tcards.
   \t
It cost $3.50, i.e. nothing; who cares?! We don't.
"""


def tokenize(*arguments: Any) -> str:
    return succeed("tokenize", *arguments)


def expected(text: str, lang: str = "en") -> list[list[str]]:
    """What the component reads of the same text."""
    docs = map(spacy.blank(lang), text.splitlines())
    return [[doc[i].text for i in inside] for doc in docs for inside in sentence_bounds(doc).tokens]


def read_all(out: Path) -> list[list[str]]:
    return list(Shards(out).sentences())


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_shards_hold_what_the_component_reads(text, tmp_path) -> None:
    output, sentences = tokenize(text, tmp_path / "out"), expected(TEXT)
    assert read_all(tmp_path / "out") == sentences
    assert len(sentences) == 11 and ["One", "word"] in sentences
    assert f"{sum(map(len, sentences))} words in 11 sentences" in output
    tokenize(text, tmp_path / "out", "--force")


@pytest.mark.parametrize("lang", ["de", "zh"])
def test_other_languages(text, tmp_path, lang) -> None:
    assert tokenize(text, tmp_path / "out", "--lang", lang, "-q") == ""
    assert read_all(tmp_path / "out") == expected(TEXT, lang)
    assert expected(TEXT, lang) != expected(TEXT)


def test_several_processes_write_the_same(text, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(readers, "ZONE_SIZE", 2)  # paragraphs of a chunk
    tokenize(text, tmp_path / "out", "--n-process", "9999")  # as many as there are
    assert read_all(tmp_path / "out") == expected(TEXT)


@pytest.mark.parametrize("n_process", [1, 2])
def test_a_failure_leaves_nothing(text, tmp_path, monkeypatch, n_process) -> None:
    monkeypatch.setattr(readers, "ZONE_SIZE", 2)
    (tmp_path / "latin.txt").write_bytes(b"\n".join([b"A paragraph."] * 50 + [b"caf\xe9"]))
    out = tmp_path / "shards" / "out"
    assert "latin.txt" in fail("tokenize", text, tmp_path / "latin.txt", out, "-n", n_process)
    assert list(out.parent.iterdir()) == []


def test_failures(text, tmp_path, monkeypatch) -> None:
    """Nothing is left of a directory that was not there, and nothing of the user's is replaced."""
    monkeypatch.setitem(sys.modules, "natto", None)
    (tmp_path / "empty.txt").write_text(" \n\t\n")
    (tmp_path / "text.conllu").write_text("1\tA\t_\n")
    (tmp_path / "lines.jsonl").write_text('{"text": "A word."}\n{"text": 3}\n')
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    out = tmp_path / "out"
    for arguments, message in [
        ([text], "Give at least one text, then the directory"),
        ([text, tmp_path / "full"], "already exists"),
        ([text, tmp_path / "full", "--force"], "is not replaced"),
        ([tmp_path / "text.conllu", out], "is not text: expected plain text"),
        ([tmp_path / "empty.txt", out], "Give a text that has some"),
        ([tmp_path / "lines.jsonl", out, "--column", "story"], "there are: text. Name one of"),
        ([text, out, "--lang", "qq"], "qq"),
        ([text, out, "--lang", "ko"], "natto-py"),
    ]:
        assert message in fail("tokenize", *arguments)
    assert not out.exists() and (tmp_path / "full" / "file").exists()


def test_docs_keep_tokens_and_sentences(text, tmp_path) -> None:
    nlp = spacy.blank("en")
    with_sentences = Doc(nlp.vocab, words=["a.b", "c", "d"], sent_starts=[True, True, False])
    docs = [with_sentences, nlp("One sentence. Another one!")]
    DocBin(docs=docs).to_disk(tmp_path / "docs.spacy")
    tokenize(tmp_path / "docs.spacy", text, tmp_path / "out")
    own = [["a.b"], ["c", "d"], ["One", "sentence", "."], ["Another", "one", "!"]]
    assert read_all(tmp_path / "out") == own + expected(TEXT)
