"""The head of a published model: its softmax and vocabulary."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spacy_elmo.lm.head import load_head
from spacy_elmo.weights.convert.published import write_published
from spacy_elmo.weights.convert.source import read_source

from ..pretraining.helpers import make_model, make_vocab
from .helpers import fails

h5py = pytest.importorskip("h5py")
VOCAB = make_vocab(["the", "a", "안녕"])


@pytest.fixture
def published(tmp_path: Path) -> Path:
    model, head = make_model(len(VOCAB))
    write_published(model, tmp_path, head.state_dict())
    write_words(tmp_path, VOCAB.words)
    return tmp_path


def change_softmax(folder: Path, **datasets: Any) -> None:
    """Put other datasets in the place of ``W`` and ``b``, or none."""
    with h5py.File(folder / "model.hdf5", "a") as file:
        for name, values in datasets.items():
            del file[f"softmax/{name}"]
            if values is not None:
                file[f"softmax/{name}"] = values


def write_words(folder: Path, words: Sequence[str]) -> None:
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [3, 0, 4, 1, 5, 2]])
def test_special_words_come_first_wherever_they_were(order: list[int], published: Path) -> None:
    _, head = make_model(len(VOCAB))
    change_softmax(published, W=head.weight.detach()[order], b=head.bias.detach()[order])
    write_words(published, [VOCAB.words[i] for i in order])
    (published / "out").mkdir()
    read_source([published]).save(published / "out")
    again, vocab = load_head(published / "out")
    assert vocab.words[:3] == ["<S>", "</S>", "<UNK>"]
    assert vocab.words[3:] == [VOCAB.words[i] for i in order if i > 2]  # the others in order
    for place, word in enumerate(vocab.words):
        assert torch.equal(again.weight[place], head.weight[VOCAB.ids[word]])
        assert torch.equal(again.bias[place], head.bias[VOCAB.ids[word]])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["<S>", "</S>", "<unk>", "the", "a", "b"], "must have <S>, </S>, <UNK>, and each"),
        (["the", "<UNK>", "<S>", "</S>", "a", "<UNK>"], "must have <S>, </S>, <UNK>, and each"),
        (VOCAB.words[:-1], "has 5 words"),
        ([*VOCAB.words, "b"], "has 7 words"),
    ],
)
def test_words_of_something_else(words: list[str], said: str, published: Path) -> None:
    write_words(published, words)
    fails(published, said)


def test_a_softmax_of_something_else(published: Path) -> None:
    change_softmax(published, W=np.zeros((6, 7), "f4"))
    fails(published, "'softmax/W' has the shape (6, 7)")
    change_softmax(published, W=np.full((6, 8), 1e300))
    fails(published, "not finite")


def test_a_published_biLM_without_words_or_softmax(published: Path) -> None:
    """Of a head without words, `elmo convert` says that it is left out."""
    for given in ([published / "options.json", published / "model.hdf5"], [published]):
        assert read_source(given).words == []
        (published / "vocab.txt").unlink(missing_ok=True)
    change_softmax(published, b=None)
    assert read_source([published]).words is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vocab.txt", b"<S>\n\xff\n"),
        ("vocab.txt.gz", gzip.compress(b"<S>\n</S>\n" * 9, mtime=0)[:20]),
    ],
)
def test_damaged_words(name: str, content: bytes, published: Path) -> None:
    (published / "vocab.txt").unlink()
    (published / name).write_bytes(content)
    fails(published, f"Cannot read the vocabulary {published / name}")
