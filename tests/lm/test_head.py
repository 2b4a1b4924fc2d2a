from __future__ import annotations

import gzip
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.weights.find import find_weights
from spacy_elmo.weights.native import save_bilm
from spacy_elmo.weights.published.weights import write_published

from ..pretraining.helpers import make_model, make_vocab

VOCAB = make_vocab(["the", "a", "안녕"])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    model, head = make_model(len(VOCAB))
    save_bilm(model, tmp_path)
    save_head(head, VOCAB, tmp_path)
    return tmp_path


def test_a_head_is_loaded_as_it_was_saved(directory: Path) -> None:
    _, expected = make_model(len(VOCAB))
    head, vocab = load_head(directory)
    assert vocab.words == VOCAB.words
    assert torch.equal(head.weight, expected.weight)
    assert torch.equal(head.bias, expected.bias)
    assert not head.training


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_any_floating_type_becomes_float32(directory: Path, kind: torch.dtype) -> None:
    tensors = load_file(directory / "head.safetensors")
    save_file({k: v.to(kind) for k, v in tensors.items()}, directory / "head.safetensors")
    head, _ = load_head(directory)
    assert head.weight.dtype == head.bias.dtype == torch.float32
    assert torch.equal(head.weight, tensors["weight"].to(kind).float())


@pytest.mark.parametrize("name", ["head.safetensors", "vocab.txt"])
def test_a_biLM_without_a_head(directory: Path, name: str) -> None:
    (directory / name).unlink()
    with pytest.raises(ValueError, match=r"without a language model's head, or .*vocab\.txt"):
        load_head(directory)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Cannot find the ELMo weights"):
        load_head(tmp_path / "nowhere")


def test_a_damaged_head(directory: Path) -> None:
    (directory / "head.safetensors").write_bytes(b"damaged")
    with pytest.raises(ValueError, match=r"Cannot read .*head\.safetensors"):
        load_head(directory)


def test_a_vocabulary_of_another_size(directory: Path) -> None:
    make_vocab(["the"]).write(directory / "vocab.txt")
    with pytest.raises(ValueError, match=r"4 words in '.*vocab.txt'\).*has the shape \(6, 8\)"):
        load_head(directory)


def test_a_head_of_another_biLM(directory: Path) -> None:
    tensors = {"weight": torch.zeros(6, 5), "bias": torch.zeros(6)}
    save_file(tensors, directory / "head.safetensors")
    with pytest.raises(ValueError, match=r"shape \(6, 5\), but the config requires \(6, 8\)"):
        load_head(directory)


def test_other_tensors(directory: Path) -> None:
    save_file({"weight": torch.zeros(6, 8)}, directory / "head.safetensors")
    with pytest.raises(ValueError, match=r"missing tensors \['bias'\]"):
        load_head(directory)
    whole = {"weight": torch.zeros(6, 8, dtype=torch.int8), "bias": torch.zeros(6)}
    save_file(whole, directory / "head.safetensors")
    with pytest.raises(ValueError, match=r"'weight' is of the type torch\.int8, expected float32"):
        load_head(directory)


# ---- Published heads


@pytest.fixture
def published(tmp_path: Path) -> Path:
    pytest.importorskip("h5py")
    model, head = make_model(len(VOCAB))
    write_published(model, tmp_path, head, VOCAB.words)
    return tmp_path


def change_softmax(folder: Path, **datasets: Any) -> None:
    """Put other datasets in the place of ``W`` and ``b``, or none."""
    with pytest.importorskip("h5py").File(folder / "model.hdf5", "a") as file:
        for name, values in datasets.items():
            del file[f"softmax/{name}"]
            if values is not None:
                file[f"softmax/{name}"] = values


def write_words(folder: Path, words: Sequence[str]) -> None:
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")


def fails(folder: Path, *parts: str) -> None:
    with pytest.raises(ValueError) as error:
        load_head(folder)
    for part in (str(folder), *parts):
        assert part in str(error.value)


def test_a_published_head_is_loaded_as_it_was_written(published: Path) -> None:
    _, expected = make_model(len(VOCAB))
    assert find_weights(published).has_head()
    head, vocab = load_head(published)
    assert vocab.words == VOCAB.words
    assert torch.equal(head.weight, expected.weight)
    assert torch.equal(head.bias, expected.bias)
    assert not head.training


@pytest.mark.parametrize("packed", [False, True])
def test_a_published_head_in_a_zip(packed: bool, published: Path, tmp_path: Path) -> None:
    _, expected = make_model(len(VOCAB))
    with zipfile.ZipFile(tmp_path / "204.zip", "w") as archive:
        for name in ("options.json", "model.hdf5"):
            archive.write(published / name, name)
        words = (published / "vocab.txt").read_bytes()
        if packed:
            archive.writestr("vocab.txt.gz", gzip.compress(words))
        else:
            archive.writestr("vocab.txt", words)
    head, vocab = load_head(tmp_path / "204.zip")
    assert vocab.words == VOCAB.words
    assert torch.equal(head.weight, expected.weight)


def test_from_layout_to_layout(directory: Path, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    model = find_weights(directory).load()
    head, vocab = load_head(directory)
    (tmp_path / "published").mkdir()
    write_published(model, tmp_path / "published", head, vocab.words)
    (tmp_path / "own").mkdir()
    save_bilm(find_weights(tmp_path / "published").load(), tmp_path / "own")
    save_head(*load_head(tmp_path / "published"), tmp_path / "own")
    for file in (tmp_path / "own").iterdir():
        assert file.read_bytes() == (directory / file.name).read_bytes()


@pytest.mark.parametrize(
    "order", [[5, 4, 3, 2, 1, 0], [2, 0, 1, 3, 4, 5], [3, 0, 4, 1, 5, 2], [1, 0, 2, 3, 4, 5]]
)
def test_special_words_in_other_places_are_put_first(order: list[int], published: Path) -> None:
    head, _ = load_head(published)
    change_softmax(published, W=head.weight.detach()[order], b=head.bias.detach()[order])
    write_words(published, [VOCAB.words[i] for i in order])
    assert find_weights(published).words() == [VOCAB.words[i] for i in order]
    again, vocab = load_head(published)
    assert vocab.words[:3] == ["<S>", "</S>", "<UNK>"]
    assert vocab.words[3:] == [VOCAB.words[i] for i in order if i > 2]  # the others in order
    for place, word in enumerate(vocab.words):
        assert torch.equal(again.weight[place], head.weight[VOCAB.ids[word]])
        assert torch.equal(again.bias[place], head.bias[VOCAB.ids[word]])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["<S>", "</S>", "<unk>", "the", "a", "b"], "must begin with <S>, </S>, <UNK>"),
        (["the", "<S>", "<UNK>", "a", "b", "c"], "must begin with <S>, </S>, <UNK>"),
        (["<S>", "</S>", "<UNK>", "the", "a", "the"], "'the' more than once"),
        (["<S>", "</S>", "<UNK>", "the", "a", "<S>"], "'<S>' more than once"),
        (["the", "<UNK>", "<S>", "</S>", "a", "<UNK>"], "'<UNK>' more than once"),
        (["the", "<S>", "</S>", "<UNK>", "a", "the"], "'the' more than once"),
    ],
)
def test_words_that_no_head_can_have(words: list[str], said: str, published: Path) -> None:
    write_words(published, words)
    fails(published, said)


@pytest.mark.parametrize("words", [VOCAB.words[:-1], [*VOCAB.words, "b"], []])
def test_the_words_of_another_published_model(words: list[str], published: Path) -> None:
    write_words(published, words)
    n_words = max(1, len(words))
    fails(published, "'weight' has the shape (6, 8)", f"{n_words} words", f"({n_words}, 8)")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"W": np.zeros((6, 7), "f4")}, "'weight' has the shape (6, 7)"),
        ({"W": np.zeros((8, 6), "f4")}, "'weight' has the shape (8, 6)"),
        ({"W": np.float32(1)}, "'weight' has the shape ()"),
        ({"W": "text"}, "Cannot read the HDF5 file"),
        ({"b": np.zeros(7, "f4")}, "'bias' has the shape (7,)"),
        ({"b": np.zeros((6, 1), "f4")}, "'bias' has the shape (6, 1)"),
        ({"b": np.full(6, b"x")}, "Cannot read the HDF5 file"),
        ({"b": np.full(6, np.nan)}, "'bias' has values that are not finite"),
        ({"W": np.full((6, 8), 1e300)}, "'weight' has values that are not finite"),
    ],
)
def test_a_softmax_of_something_else(changes: dict[str, Any], said: str, published: Path) -> None:
    change_softmax(published, **changes)
    fails(published, said)


def test_an_empty_softmax(published: Path) -> None:
    change_softmax(published, W=pytest.importorskip("h5py").Empty("f4"))
    fails(published, "model.hdf5")


@pytest.mark.parametrize("kind", ["<f2", ">f4", ">f8"])
def test_a_softmax_of_any_floating_type(kind: str, published: Path) -> None:
    head, _ = load_head(published)
    weight, bias = (tensor.detach().numpy().astype(kind) for tensor in (head.weight, head.bias))
    change_softmax(published, W=weight, b=bias)
    again, _ = load_head(published)
    assert again.weight.dtype == again.bias.dtype == torch.float32
    np.testing.assert_array_equal(again.weight.detach().numpy(), weight.astype("f4"))
    np.testing.assert_array_equal(again.bias.detach().numpy(), bias.astype("f4"))


@pytest.mark.parametrize("missing", ["W", "b"])
def test_a_published_biLM_without_a_softmax(missing: str, published: Path) -> None:
    change_softmax(published, **{missing: None})
    assert not find_weights(published).has_head()
    fails(published, "without a language model's head")


def test_a_published_biLM_without_words(published: Path) -> None:
    pair = [published / "options.json", published / "model.hdf5"]
    with pytest.raises(ValueError, match=r"without its words \(vocab\.txt\)"):
        load_head(pair)
    (published / "vocab.txt").unlink()
    assert not find_weights(published).has_head()
    fails(published, "without its words (vocab.txt)")


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
