from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary

COUNTS = Counter({"the": 9, "b": 4, "a": 4, "c": 4, "rare": 1, "<UNK>": 50, "</S>": 60})


@pytest.mark.parametrize(
    ("max_size", "min_count", "words"),
    [(100, 1, ["the", "a", "b", "c", "rare"]), (5, 1, ["the", "a"]), (100, 5, ["the"])],
)
def test_order_is_by_count_then_by_alphabet(
    max_size: int, min_count: int, words: list[str]
) -> None:
    """The cap includes the special words."""
    assert Vocabulary.from_counts(COUNTS, max_size, min_count).words == [*SPECIALS, *words]


def test_a_vocabulary_is_read_as_it_was_written(tmp_path: Path) -> None:
    vocab = Vocabulary([*SPECIALS, "안녕", "#", "naïve", "\ufeff"])
    vocab.write(tmp_path / "vocab.txt")
    assert Vocabulary.read(tmp_path / "vocab.txt").words == vocab.words
    assert [path.name for path in tmp_path.iterdir()] == ["vocab.txt"]


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("<S>\r\n</S>\r\n<UNK>\r\n", encoding="utf-8-sig")
    assert Vocabulary.read(tmp_path / "vocab.txt").words == list(SPECIALS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the\na\n", "must begin with <S>, </S>, <UNK>"),
        ("<S>\n</S>\n<UNK>\nthe\na\nthe\n", "has the word 'the' more than once"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "words.txt").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"words\.txt .*{message}"):
        Vocabulary.read(tmp_path / "words.txt")
