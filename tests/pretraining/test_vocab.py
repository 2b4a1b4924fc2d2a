from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.pretraining.data.stats import count_corpus

COUNTS = Counter({"the": 9, "b": 4, "a": 4, "c": 4, "rare": 1, "<UNK>": 50, "</S>": 60})


def test_order_is_by_count_then_by_alphabet() -> None:
    vocab = Vocabulary.from_counts(COUNTS, max_size=100, min_count=1)
    assert vocab.words == ["<S>", "</S>", "<UNK>", "the", "a", "b", "c", "rare"]


def test_the_cap_includes_the_special_words() -> None:
    vocab = Vocabulary.from_counts(COUNTS, max_size=5, min_count=1)
    assert vocab.words == [*SPECIALS, "the", "a"]


def test_rare_words_are_left_out() -> None:
    assert "rare" in Vocabulary.from_counts(COUNTS, 100, 1).places
    assert Vocabulary.from_counts(COUNTS, 100, 2).words == [*SPECIALS, "the", "a", "b", "c"]
    assert Vocabulary.from_counts(COUNTS, 100, 5).words == [*SPECIALS, "the"]


def test_places() -> None:
    vocab = Vocabulary([*SPECIALS, "one", "two"])
    assert [vocab[word] for word in ["<S>", "</S>", "<UNK>", "one", "two", "One"]] == [
        0, 1, 2, 3, 4, 2,
    ]  # fmt: skip
    assert len(vocab) == 5


def test_a_vocabulary_is_read_as_it_was_written(tmp_path: Path) -> None:
    vocab = Vocabulary([*SPECIALS, "안녕", "#", "naïve", "\ufeff"])
    vocab.write(tmp_path / "vocab.txt")
    assert Vocabulary.read(tmp_path / "vocab.txt").words == vocab.words
    assert [path.name for path in tmp_path.iterdir()] == ["vocab.txt"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the\na\n", "must begin with <S>, </S>, <UNK>"),
        ("</S>\n<S>\n<UNK>\n", "must begin with"),
        ("", "must begin with"),
        ("<S>\n</S>\n<UNK>\nthe\na\nthe\n", "has the word 'the' more than once"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "words.txt").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"words\.txt .*{message}"):
        Vocabulary.read(tmp_path / "words.txt")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Cannot read the vocabulary .*words\.txt"):
        Vocabulary.read(tmp_path / "words.txt")


def test_a_survey_counts_all_that_is_lost() -> None:
    found = count_corpus(
        [["a", "b", "a"], ["x" * 49, "ж" * 24], ["c"] * 5, ["ж" * 25]], max_words=4
    )
    assert found.counts == {"a": 2, "b": 1, "c": 5, "x" * 49: 1, "ж" * 24: 1, "ж" * 25: 1}
    assert (found.n_sentences, found.n_long) == (4, 1)
    assert found.describe(Vocabulary([*SPECIALS, "a", "c"]), 4, 50) == (
        "11 words in 4 sentences, 36.36% <UNK>; 1 sentences of more than 4 words cut into pieces; "
        "2 words cut to 48 bytes"
    )


def test_a_survey_of_what_loses_nothing_says_so_by_silence() -> None:
    vocab = Vocabulary([*SPECIALS, "a"])
    assert (
        count_corpus([["a"] * 4], 4).describe(vocab, 4, 50) == "4 words in 1 sentences, 0.00% <UNK>"
    )


def test_rare_words_of_a_large_text_are_forgotten_and_frequent_ones_are_not() -> None:
    text = ([f"rare{i}", "often", f"rare{i + 1}", "often"] for i in range(5000))
    found = count_corpus(text, max_words=100, most_words=100)
    assert found.has_forgotten
    assert len(found.counts) <= 100
    assert (found.counts["often"], found.n_words) == (10_000, 20_000)
    described = found.describe(Vocabulary([*SPECIALS, "often"]), 100, 7)
    assert "20,000 words in 5,000 sentences, 50.00% <UNK>" in described
    assert "at least " in described
    assert "more distinct words than can be counted, the rarest are left out" in described
