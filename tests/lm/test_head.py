"""The head of a language model, and its vocabulary."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.lm.vocabulary import SPECIALS, Vocabulary
from spacy_elmo.weights.native import save_bilm

from ..pretraining.helpers import make_model, make_vocab

VOCAB = make_vocab(["the", "a", "안녕"])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    model, head = make_model(len(VOCAB))
    save_bilm(model, tmp_path)
    save_head(head, VOCAB, tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["head.safetensors", "vocab.txt"])
def test_a_biLM_without_a_head(directory: Path, name: str) -> None:
    (directory / name).unlink()
    with pytest.raises(ValueError, match=r"without a language model's head"):
        load_head(directory)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"weight": torch.zeros(5, 8), "bias": torch.zeros(5)}, r"shape \(5, 8\)"),  # other words
        ({"weight": torch.zeros(6, 5), "bias": torch.zeros(6)}, r"shape \(6, 5\)"),  # another biLM
        ({"weight": torch.zeros(6, 8)}, r"missing tensors \['bias'\]"),
        ({"weight": torch.zeros(6, 8).char(), "bias": torch.zeros(6)}, "'weight' .* of the type"),
        (None, r"Cannot read .*head\.safetensors"),
    ],
)
def test_another_head(
    directory: Path, tensors: dict[str, torch.Tensor] | None, message: str
) -> None:
    if tensors is None:
        (directory / "head.safetensors").write_bytes(b"damaged")
    else:
        save_file(tensors, directory / "head.safetensors")
    with pytest.raises(ValueError, match=message):
        load_head(directory)


# The vocabulary

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
