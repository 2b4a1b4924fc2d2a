from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.text.shards import Shards, read_lines, write_meta, write_shards

from ..pretraining.helpers import prose


def read_all(directory: Path) -> list[list[str]]:
    return list(Shards(directory).sentences())


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    sentences = [*prose(), ["안녕하세요", "\ufeffx", "naïve", "👩‍👩‍👧", "#", "\u0301"]]
    assert write_shards(sentences, tmp_path / "out", words_per_shard=20) == (
        len(sentences),
        sum(map(len, sentences)),
    )
    assert read_all(tmp_path / "out") == sentences
    shards = Shards(tmp_path / "out")  # each ends with the sentence that fills it
    *full, _ = [list(shards.sentences_in(file)) for file in shards.files()]
    assert len(full) > 2
    assert all(sum(map(len, shard[:-1])) < 20 <= sum(map(len, shard)) for shard in full)


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.text(), max_size=4), max_size=6),
    st.integers(1, 9),
)
def test_any_text_survives(
    tmp_path_factory: pytest.TempPathFactory,
    sentences: list[list[str]],
    words_per_shard: int,
) -> None:
    out = tmp_path_factory.mktemp("shards")
    # White space is what separates words, so none can be inside one.
    words = [[piece for word in sentence for piece in word.split()] for sentence in sentences]
    expected = [sentence for sentence in words if sentence]
    n_sentences, n_words = write_shards(sentences, out, words_per_shard)
    assert (n_sentences, n_words) == (len(expected), sum(map(len, expected)))
    assert (read_all(out) if expected else list(out.iterdir())) == expected


def damaged_files() -> dict[str, bytes | None]:
    text = "\n".join(f"{n} bottles of beer on wall {n * n}" for n in range(500)).encode()
    packed = gzip.compress(text)
    xz = lzma.compress(text)
    middle = len(packed) // 2
    return {
        "cut.txt.gz": packed[:middle],
        "no-gzip.txt.gz": b"plain text",
        "no-block.txt.gz": packed[:10] + b"\xff" + packed[11:],
        "flipped.txt.gz": packed[:middle] + bytes(8) + packed[middle + 8 :],
        "cut.txt.xz": xz[:-20],
        "flipped.txt.xz": xz[:100] + bytes(8) + xz[108:],
        "latin-1.txt": "né\n".encode("latin-1"),
        "missing.txt": None,
    }


@pytest.mark.parametrize("name", damaged_files())
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if content := damaged_files()[name]:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=f"Cannot read .*{name}"):
        list(read_lines(path))


def test_files_of_shards(tmp_path: Path) -> None:
    for name in ["b.txt.gz", "a.txt.xz", "c.txt", ".part-d.txt", "notes.md"]:
        (tmp_path / name).touch()
    assert [path.name for path in Shards(tmp_path).files()] == ["a.txt.xz", "b.txt.gz", "c.txt"]
    assert Shards(str(tmp_path / "notes.md")).files() == [tmp_path / "notes.md"]
    with pytest.raises(ValueError, match=r"No texts at '.*nowhere'"):
        Shards(tmp_path / "nowhere").files()
    for name in ("a.jsonl", "a.json.gz", "a.conllu", "a.spacy", "A.PARQUET"):
        (tmp_path / name).touch()
        with pytest.raises(ValueError, match=f"{name}' is not tokenized text"):
            Shards(tmp_path / name).files()
    write_shards([["a"]], tmp_path / "corpus")
    write_meta(tmp_path / "corpus", "en")
    (tmp_path / "corpus" / "folder").mkdir()
    assert list(Shards(tmp_path / "corpus" / "*").sentences()) == [["a"]]  # texts alone


def test_empty_lines_are_no_sentences(tmp_path: Path) -> None:
    """Nor is a byte order mark a part of a word; here two files were joined."""
    (tmp_path / "text.txt").write_text("a  b\n\n \t\n\ufeffc\n", encoding="utf-8-sig")
    assert list(Shards(tmp_path).sentences()) == [["a", "b"], ["c"]]


def test_the_language_of_shards_is_known_if_all_name_the_same(tmp_path: Path) -> None:
    for name, lang in [("a", "ko"), ("b", "ko"), ("c", "de"), ("d", None)]:
        write_shards([["a", "b"]], tmp_path / name)
        if lang:
            write_meta(tmp_path / name, lang)

    def language(*names: str) -> str | None:
        return Shards([tmp_path / name for name in names]).card().get("lang")

    assert language("a", "b") == "ko"
    assert language("a", "c") is None
    assert language("a", "d") is None
    (tmp_path / "d" / "meta.json").write_text("{")
    with pytest.raises(ValueError, match=r"Cannot read .*meta\.json"):
        language("d")
