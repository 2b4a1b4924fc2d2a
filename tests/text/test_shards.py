from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spacy_elmo.text.files import read_lines
from spacy_elmo.text.shards import Shards, write_meta, write_shards

from ..pretraining.helpers import prose

WORDS = ["안녕하세요", "\ufeffx", "naïve", "👩‍👩‍👧", "#", "\u0301"]


@settings(max_examples=60)
@given(st.lists(st.lists(st.text(), max_size=4), max_size=6), st.integers(1, 9))
@example([*prose(), WORDS], 20)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[list[str]], words_per_shard: int
) -> None:
    """Each shard ends with the sentence that fills it."""
    out = tmp_path_factory.mktemp("shards")
    # White space is what separates words, so none can be inside one.
    words = [[piece for word in sentence for piece in word.split()] for sentence in sentences]
    expected = [sentence for sentence in words if sentence]
    assert write_shards(sentences, out, words_per_shard) == (len(expected), sum(map(len, expected)))
    shards = [list(Shards(file).sentences()) for file in sorted(out.iterdir())]
    assert [sentence for shard in shards for sentence in shard] == expected
    for shard in shards[:-1]:
        assert sum(map(len, shard[:-1])) < words_per_shard <= sum(map(len, shard))


TEXT = "\n".join(f"{n} bottles of beer on wall {n * n}" for n in range(500)).encode()
GZ, XZ = gzip.compress(TEXT), lzma.compress(TEXT)
DAMAGED = {
    "cut.txt.gz": GZ[:1000],
    "no-gzip.txt.gz": b"plain text",
    "flipped.txt.gz": GZ[:1000] + bytes(8) + GZ[1008:],
    "cut.txt.xz": XZ[:-20],
    "latin-1.txt": "né\n".encode("latin-1"),
}


@pytest.mark.parametrize("name", [*DAMAGED, "missing.txt"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    if name in DAMAGED:
        (tmp_path / name).write_bytes(DAMAGED[name])
    with pytest.raises(ValueError, match=f"Cannot read .*{name}"):
        list(read_lines(tmp_path / name))


def test_files_of_shards(tmp_path: Path) -> None:
    for name in ["b.TXT.gz", "a.txt.xz", "c.txt", ".part-d.txt", "notes.md"]:
        (tmp_path / name).touch()
    (tmp_path / "folder.txt").mkdir()
    assert [path.name for path in Shards(tmp_path).files()] == ["a.txt.xz", "b.TXT.gz", "c.txt"]
    assert Shards(str(tmp_path / "n*.md")).files() == [tmp_path / "notes.md"]
    with pytest.raises(ValueError, match=r"No texts at '.*nowhere'"):
        Shards(tmp_path / "nowhere").files()
    for name in ("a.jsonl", "a.conllu", "a.tsv.xz"):
        (tmp_path / name).touch()
        with pytest.raises(ValueError, match=f"{name}' is not tokenized text"):
            Shards(tmp_path / name).files()


def test_empty_lines_are_no_sentences(tmp_path: Path) -> None:
    """Nor is a byte order mark a part of a word; here two files were joined."""
    (tmp_path / "text.txt").write_text("a  b\n\n \t\n\ufeffc\n", encoding="utf-8-sig")
    assert list(Shards(tmp_path).sentences()) == [["a", "b"], ["c"]]


def test_the_language_of_shards_is_known_if_all_name_the_same(tmp_path: Path) -> None:
    for name, lang in [("a", "ko"), ("b", "ko"), ("c", "de"), ("d", None)]:
        write_shards([["a", "b"]], tmp_path / name)
        if lang:
            write_meta(tmp_path / name, lang)

    for names, lang in [("ab", "ko"), ("ac", None), ("ad", None)]:
        assert Shards([tmp_path / name for name in names]).card().get("lang") == lang
    (tmp_path / "d" / "meta.json").write_text("{")
    with pytest.raises(ValueError, match=r"Cannot read .*meta\.json"):
        Shards(tmp_path / "d").card()
