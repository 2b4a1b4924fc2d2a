"""``python -m spacy elmo tokenize``."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import spacy
from click.testing import Result
from spacy.tokens import Doc, DocBin
from typer.testing import CliRunner

from spacy_elmo.cli import app
from spacy_elmo.text import readers
from spacy_elmo.text.segments import sentence_bounds
from spacy_elmo.text.shards import Shards, open_text

TEXT = """\
Mr. O'Neill didn't answer.  He looked at the bank (of the river, I mean) -- and left!
"Where's the U.K. bank?" she asked. "Over there..."

One word
Zwei Sätze. 안녕하세요 여러분. 👩‍👩‍👧 play\t\tcards.
   \t
It cost $3.50, i.e. nothing; who cares?! We don't.
"""


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["tokenize", *map(str, arguments)])


def expected(text: str, lang: str = "en") -> list[list[str]]:
    """What the component reads of the same text."""
    nlp = spacy.blank(lang)
    sentences = []
    for paragraph in text.splitlines():
        doc = nlp(paragraph)
        words, bounds = sentence_bounds(doc)
        sentences += [[doc[int(i)].text for i in words[start:end]] for start, end in bounds]
    return sentences


def read_all(out: Path) -> list[list[str]]:
    return list(Shards(out).sentences())


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_shards_hold_what_the_component_reads(text: Path, tmp_path: Path) -> None:
    result = run(text, tmp_path / "out")
    assert result.exit_code == 0, result.output
    sentences = expected(TEXT)
    assert read_all(tmp_path / "out") == sentences
    assert len(sentences) == 11
    assert ["One", "word"] in sentences
    n_words = sum(map(len, sentences))
    assert f"{n_words} words in {len(sentences)} sentences" in result.output


def test_for_machines(text: Path, tmp_path: Path) -> None:
    out, sentences = tmp_path / "out", expected(TEXT)
    data = json.loads(run(text, out, "--json").stdout)
    n_words = sum(map(len, sentences))
    assert data == {"output": str(out), "sentences": len(sentences), "words": n_words}


@pytest.mark.parametrize("lang", ["de", "xx", "zh"])
def test_other_languages(text: Path, tmp_path: Path, lang: str) -> None:
    assert run(text, tmp_path / "out", "--lang", lang, "-q").output == ""
    assert read_all(tmp_path / "out") == expected(TEXT, lang)
    assert expected(TEXT, lang) != expected(TEXT)


def test_texts_may_be_packed_and_several(tmp_path: Path) -> None:
    data = TEXT.encode()
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(data))
    (tmp_path / "b.txt.xz").write_bytes(lzma.compress(data))
    # As some editors on Windows write it: a byte order mark, other line ends.
    (tmp_path / "c.txt").write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    texts = [tmp_path / name for name in ("a.txt.gz", "b.txt.xz", "c.txt")]
    result = run(*texts, tmp_path / "out", "-c", "xz", "-w", "20")
    assert result.exit_code == 0, result.output
    assert read_all(tmp_path / "out") == expected(TEXT) * 3
    names = [path.name for path in Shards(tmp_path / "out").files()]
    assert len(names) > 3
    assert names[:2] == ["shard-00000.txt.xz", "shard-00001.txt.xz"]


def test_several_processes_write_the_same(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "ZONE_SIZE", 2)  # paragraphs of a chunk
    assert run(text, tmp_path / "out", "--n-process", "9999").exit_code == 0  # as many as there are
    assert read_all(tmp_path / "out") == expected(TEXT)


def test_as_a_command_of_spacy(text: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spacy", "elmo", "tokenize", str(text), str(tmp_path / "out")]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert result.returncode == 0, result.stderr
    assert read_all(tmp_path / "out") == expected(TEXT)


@pytest.mark.parametrize("n_process", [1, 2])
def test_a_failure_leaves_nothing(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_process: int
) -> None:
    monkeypatch.setattr(readers, "ZONE_SIZE", 2)
    (tmp_path / "latin.txt").write_bytes(b"\n".join([b"A paragraph."] * 50 + [b"caf\xe9"]))
    out = tmp_path / "shards" / "out"
    result = run(text, tmp_path / "latin.txt", out, "--n-process", str(n_process), "-w", "5")
    assert result.exit_code == 1
    assert "latin.txt" in result.output
    assert list(out.parent.iterdir()) == []


def test_failures(text: Path, tmp_path: Path) -> None:
    (tmp_path / "damaged.txt.gz").write_bytes(gzip.compress(TEXT.encode())[:60])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    out = tmp_path / "out"
    for arguments, message in [
        ([text], "Give at least one text, then the directory"),
        ([tmp_path / "gone.txt", out], "There is no text file"),
        ([text, text], "must be a directory"),
        ([text, tmp_path / "full"], "must be a directory, new or empty"),
        ([tmp_path / "damaged.txt.gz", out], "damaged.txt.gz"),
        ([text, tmp_path / "new", "-c", "zip"], "The compression is 'zip'"),
        ([text, tmp_path / "new", "--lang", "qq"], "qq"),
    ]:
        result = run(*arguments)
        assert result.exit_code == 1
        assert result.exception is None or isinstance(result.exception, SystemExit)
        # wasabi breaks long lines
        assert message.replace(" ", "") in "".join(result.output.split())
    assert not (tmp_path / "new").exists()
    assert not any(path.is_file() for path in out.rglob("*"))


def test_a_language_that_needs_more_says_what(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "natto", None)
    result = run(text, tmp_path / "out", "--lang", "ko")
    assert result.exit_code == 1
    assert "natto-py" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_json(text: Path, tmp_path: Path, ending: str) -> None:
    first, second = TEXT.split("\n\n")
    lines = [json.dumps({"text": part, "meta": {"n": 1}}) for part in (first, second)]
    path = tmp_path / f"text{ending}"
    with open_text(path, "wt") as file:
        file.write("\n".join([*lines, ""]) + "\n")
    assert run(path, tmp_path / "out").exit_code == 0
    assert read_all(tmp_path / "out") == expected(TEXT)


def test_tables(text: Path, tmp_path: Path) -> None:
    """As what they hold, not as prose."""
    with open(tmp_path / "a.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["id", "story"], [1, TEXT]])
    assert run(tmp_path / "a.csv", tmp_path / "out", "--column", "story").exit_code == 0
    assert read_all(tmp_path / "out") == expected(TEXT)
    result = run(tmp_path / "a.csv", tmp_path / "other")
    assert result.exit_code == 1 and "--column" in result.output
    # Lines that end in CR alone are paragraphs, too.
    text.write_text(TEXT.replace("\n", "\r"), encoding="utf-8", newline="")
    assert run(text, tmp_path / "cr").exit_code == 0
    assert read_all(tmp_path / "cr") == expected(TEXT)


def test_json_without_a_text(tmp_path: Path) -> None:
    path = tmp_path / "text.jsonl"
    for line in ('{"tokens": []}', "{", "[]", '{"text": 3}', '{"text": NaN}'):
        path.write_text(f'{{"text": "A word."}}\n{line}\n')
        result = run(path, tmp_path / "out")
        assert result.exit_code == 1
        assert "Line 2 of" in " ".join(result.output.split())
        assert not read_left(tmp_path / "out")


def test_other_formats(tmp_path: Path) -> None:
    path = tmp_path / "text.conllu"
    path.write_text("1\tA\t_\n")
    result = run(path, tmp_path / "out")
    assert result.exit_code == 1
    assert "is not text: expected plain text" in " ".join(result.output.split())
    assert not read_left(tmp_path / "out")


def read_left(out: Path) -> list[Path]:
    return list(out.iterdir()) if out.exists() else []


def test_docs_keep_tokens_and_sentences(text: Path, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    with_sentences = Doc(nlp.vocab, words=["a.b", "c", "d"], sent_starts=[True, True, False])
    without = nlp("One sentence. Another one!")
    DocBin(docs=[with_sentences, without]).to_disk(tmp_path / "docs.spacy")
    assert run(tmp_path / "docs.spacy", text, tmp_path / "out").exit_code == 0
    own = [["a.b"], ["c", "d"], ["One", "sentence", "."], ["Another", "one", "!"]]
    assert read_all(tmp_path / "out") == own + expected(TEXT)
    (tmp_path / "bad.spacy").write_bytes(b"nothing")
    result = run(tmp_path / "bad.spacy", tmp_path / "other")
    assert result.exit_code == 1
    assert "Cannot read the DocBin" in " ".join(result.output.split())


@pytest.mark.parametrize("content", ["", " \n\t\n"])
def test_a_text_without_words(content: str, tmp_path: Path) -> None:
    """One error here, instead of one about shards from `pretrain`."""
    empty = tmp_path / "empty.txt"
    empty.write_text(content, encoding="utf-8")
    result = run(empty, tmp_path / "out")
    assert result.exit_code == 1
    assert "There are no words in" in result.output and "empty.txt" in result.output
    assert not (tmp_path / "out").exists()


def test_zstandard(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zstd = pytest.importorskip("backports.zstd")
    packed = tmp_path / "text.txt.zst"
    packed.write_bytes(zstd.compress(TEXT.encode()))
    assert run(packed, tmp_path / "out", "--compression", "zst").exit_code == 0
    assert [path.suffix for path in Shards(tmp_path / "out").files()] == [".zst"]
    assert read_all(tmp_path / "out") == expected(TEXT)
    packed.write_bytes(zstd.compress(TEXT.encode())[:-5])
    result = run(packed, tmp_path / "cut")
    assert (result.exit_code, list(read_left(tmp_path / "cut"))) == (1, [])
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.delattr("backports.zstd", raising=False)
    result = run(text, tmp_path / "missing", "--compression", "zst")
    assert result.exit_code == 1
    assert "spacy-elmo[zst]" in result.output
    assert not (tmp_path / "missing").exists()


def test_patterns_of_shards(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "other.csv"):
        (tmp_path / name).write_text("A word .\n")
    assert [path.name for path in Shards(tmp_path / "*.txt").files()] == ["a.txt", "b.txt"]
    with pytest.raises(ValueError, match=r"No shards at '.*gz'"):
        Shards(tmp_path / "*.gz").files()
