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


def converted(published: Path) -> Path:
    out = published / "out"
    out.mkdir()
    source = read_source([published])
    source.save(out)
    return out


@pytest.mark.parametrize(
    "order", [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 0, 1, 3, 4, 5], [3, 0, 4, 1, 5, 2]]
)
def test_special_words_come_first_wherever_they_were(order: list[int], published: Path) -> None:
    _, head = make_model(len(VOCAB))
    change_softmax(published, W=head.weight.detach()[order], b=head.bias.detach()[order])
    write_words(published, [VOCAB.words[i] for i in order])
    again, vocab = load_head(converted(published))
    assert vocab.words[:3] == ["<S>", "</S>", "<UNK>"]
    assert vocab.words[3:] == [VOCAB.words[i] for i in order if i > 2]  # the others in order
    for place, word in enumerate(vocab.words):
        assert torch.equal(again.weight[place], head.weight[VOCAB.ids[word]])
        assert torch.equal(again.bias[place], head.bias[VOCAB.ids[word]])


@pytest.mark.parametrize(
    "words",
    [
        ["<S>", "</S>", "<unk>", "the", "a", "b"],
        ["the", "<S>", "<UNK>", "a", "b", "c"],
        ["<S>", "</S>", "<UNK>", "the", "a", "the"],
        ["the", "<UNK>", "<S>", "</S>", "a", "<UNK>"],
    ],
)
def test_words_that_no_head_can_have(words: list[str], published: Path) -> None:
    write_words(published, words)
    fails(published, "must have <S>, </S>, <UNK>, and each word once")


@pytest.mark.parametrize("words", [VOCAB.words[:-1], [*VOCAB.words, "b"], []])
def test_the_words_of_another_published_model(words: list[str], published: Path) -> None:
    write_words(published, words)
    n_words = max(1, len(words))
    fails(published, "has the shape (6, 8)", f"has {n_words} words", f"({n_words}, 8)")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"W": np.zeros((6, 7), "f4")}, "'softmax/W' has the shape (6, 7)"),
        ({"W": np.float32(1)}, "'softmax/W' has the shape ()"),
        ({"W": "text"}, "'softmax/W' has the shape ()"),
        ({"W": h5py.Empty("f4")}, "'softmax/W' has the shape None"),
        ({"b": np.zeros((6, 1), "f4")}, "'softmax/b' has the shape (6, 1)"),
        ({"b": np.full(6, b"x")}, "expected is floating point"),
        ({"b": np.full(6, np.nan)}, "not finite"),
        ({"W": np.full((6, 8), 1e300)}, "not finite"),
    ],
)
def test_a_softmax_of_something_else(changes: dict[str, Any], said: str, published: Path) -> None:
    change_softmax(published, **changes)
    fails(published, said)


@pytest.mark.parametrize("kind", ["<f2", ">f4", ">f8"])
def test_a_softmax_of_any_floating_type(kind: str, published: Path) -> None:
    _, head = make_model(len(VOCAB))
    weight, bias = (tensor.detach().numpy().astype(kind) for tensor in (head.weight, head.bias))
    change_softmax(published, W=weight, b=bias)
    source = read_source([published])
    np.testing.assert_array_equal(source.head["weight"].numpy(), weight.astype("f4"))
    np.testing.assert_array_equal(source.head["bias"].numpy(), bias.astype("f4"))


@pytest.mark.parametrize("missing", ["W", "b"])
def test_a_published_biLM_without_a_softmax(missing: str, published: Path) -> None:
    change_softmax(published, **{missing: None})
    source = read_source([published])
    assert source.words is None


def test_a_published_biLM_without_words(published: Path) -> None:
    for given in ([published / "options.json", published / "model.hdf5"], [published]):
        source = read_source(given)
        assert source.words == []
        (published / "vocab.txt").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vocab.txt", b"<S>\n\xff\n"),
        ("vocab.txt.gz", b"<S>\n</S>\n"),
        ("vocab.txt.gz", gzip.compress(b"<S>\n</S>\n" * 9, mtime=0)[:20]),
        ("vocab.txt.gz", gzip.compress(b"<S>\n</S>\n", mtime=0)[:10] + b"\xff" * 20),
    ],
)
def test_damaged_words(name: str, content: bytes, published: Path) -> None:
    (published / "vocab.txt").unlink()
    (published / name).write_bytes(content)
    fails(published, f"Cannot read the vocabulary {published / name}")
