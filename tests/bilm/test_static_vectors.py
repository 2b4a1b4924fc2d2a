"""The token encoder on top of a table of static word vectors."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch.autograd import gradcheck

from spacy_elmo.bilm.characters import BOS, EOS
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.static_vectors import WordTable, WordVectors, pack_words
from spacy_elmo.util.files import atomic_directory
from spacy_elmo.weights.convert.datasets import to_parameters
from spacy_elmo.weights.convert.options import from_options
from spacy_elmo.weights.convert.published import write_published
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import Card
from spacy_elmo.weights.native import save_bilm
from spacy_elmo.weights.saved import from_bytes, to_bytes

from . import reference
from .helpers import make_options, max_difference
from .test_model import check_autocast

# "The" and "the" share a row, as do others; a word may hold white space, or nothing.
WORDS = ["the", "The", "bank", "Größe", " ", "\n", "a\x00b\r\n", "\u2028", "安", "", "🎉"]
ROWS = [0, 0, 1, 2, 3, 3, 4, 5, 6, 5, 7]
SENTENCES = [["the", "bank", "."], ["The", "unheard", "of", "\n", "安"], [], ["Größe"]]
SIZES = {"n_words": 11, "n_vectors": 8, "vector_dim": 3}


def make_table(dim: int = 3, seed: int = 0) -> WordTable:
    vectors = np.random.default_rng(seed).normal(size=(8, dim)).astype(np.float32)
    return WordTable(list(WORDS), np.array(ROWS), vectors)


def make_config(**changes: Any) -> BiLMConfig:
    settings = {"projection_dim": 5, "dim": 9, "n_layers": 2, **SIZES}
    return BiLMConfig.from_dict({**settings, "token_encoder": "vectors", **changes})


def make_bilm(table: WordTable | None = None, trainable: bool = False) -> BiLM:
    table = table or make_table()
    torch.manual_seed(0)
    model = BiLM(make_config(**table.sizes())).eval()
    model.word_vectors.fill(table, trainable)
    return model


def layers_of(model: BiLM) -> list[np.ndarray]:
    with torch.no_grad():
        return [layers.numpy() for layers in model.read(SENTENCES)[0]]


def same(one: BiLM, other: BiLM) -> bool:
    a, b = one.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype and torch.equal(a[name], b[name]) for name in a
    )


# What it computes


def test_under_autocast_and_outside() -> None:
    check_autocast(make_bilm())


@pytest.mark.parametrize("vector_dim", [3, 5])
def test_same_as_the_reference(vector_dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(vector_dim)
    model = make_bilm(table)
    assert (model.word_vectors.projection is None) == (vector_dim == 5)
    options = make_options()
    weights = reference.random_weights(options, np.random.default_rng(0))
    of_lstm = {
        name: value
        for name, value in to_parameters(from_options(options), weights, source="").items()
        if name.startswith("lstm.")
    }
    model.load_state_dict(of_lstm, strict=False)
    state = {name: t.double().numpy() for name, t in model.state_dict().items()}

    def encode(options: Any, weights: Any, word: str) -> np.ndarray:
        special = {BOS: 0, EOS: 1}
        if word in special or word not in WORDS:
            x = state["word_vectors.special"][special.get(word, 2)]
        else:
            x = table.vectors[ROWS[WORDS.index(word)]].astype(np.float64)
        if vector_dim == 5:
            return x
        weight, bias = (state[f"word_vectors.projection.{name}"] for name in ("weight", "bias"))
        return weight @ x + bias

    monkeypatch.setattr(reference, "encode_word", encode)
    for words, ours in zip(SENTENCES, layers_of(model), strict=True):
        theirs, _ = reference.read_sentence(options, weights, words)
        assert max_difference(ours, theirs) <= 1e-5


@pytest.mark.parametrize("vector_dim", [3, 5])
def test_gradients(vector_dim: int) -> None:
    encoder = make_bilm(make_table(vector_dim), trainable=True).word_vectors.double()
    names, values = zip(*encoder.named_parameters(), strict=True)
    assert {"special", "table"} <= set(names)
    ids = torch.from_numpy(encoder.to_ids([BOS, "the", "?", "The", "🎉", "!", EOS])[0]).long()

    def encode(*given: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(encoder, dict(zip(names, given, strict=True)), ids)

    values = tuple(value.detach().clone().requires_grad_() for value in values)
    assert gradcheck(encode, values)


def test_unknown_words_share_a_row_that_is_not_zero() -> None:
    model = make_bilm()
    x = model.encode(["the", "THE", "never", "The", BOS, EOS, "<UNK>"])
    assert torch.equal(x[1], x[2]) and torch.equal(x[1], x[6])
    assert torch.equal(x[0], x[3])
    assert len(torch.unique(x, dim=0)) == 4
    special = model.word_vectors.special.detach()
    assert (special.abs() > 0).all() and special.std() < 5 * make_table().vectors.std()
    assert torch.equal(special, make_bilm().word_vectors.special)  # the same each time


def test_a_word_of_the_table_is_no_boundary() -> None:
    table = WordTable([BOS, "a", "<UNK>"], np.arange(3), make_table().vectors[:3])
    ids, sizes = make_bilm(table).word_vectors.to_ids(["a", BOS, "<UNK>", "b"])
    assert (ids.tolist(), sizes.tolist()) == ([[4], [0], [5], [2]], [1] * 4)


def test_a_table_that_does_not_learn_is_no_parameter() -> None:
    frozen, learning = make_bilm(), make_bilm(trainable=True)
    names = {name for name, _ in learning.named_parameters()}
    assert names - {name for name, _ in frozen.named_parameters()} == {"word_vectors.table"}
    frozen.requires_grad_(True)
    assert not frozen.word_vectors.table.requires_grad
    assert same(frozen, learning)  # but they are stored alike
    table = make_table()
    model = make_bilm(table, trainable=True)
    with torch.no_grad():
        model.word_vectors.table.zero_()
    assert (table.vectors == make_table().vectors).all()


# Words


@given(st.lists(st.text(st.characters()), unique=True, min_size=1, max_size=20))
def test_words_of_any_characters(words: list[str]) -> None:
    table = WordTable(words, np.zeros(len(words)), np.ones((1, 2)))
    model = make_bilm(table)
    again = from_bytes(to_bytes(model, Card(), None))[0]
    assert again.word_vectors.contents().words == words


@pytest.mark.parametrize(
    ("words", "rows", "vectors", "said"),
    [
        ([], [], np.ones((1, 2)), "0 words"),
        (["a"], [0], np.ones((1, 0)), "shape (1, 0)"),
        (["a"], [0], np.ones(2), "shape (2,)"),
        (["a"], [-1], np.ones((1, 2)), "from -1 to 0"),
        (["a", "b"], [0, 1], [[1, 2], [-1e30, 3]], "Row 1 of the word vectors"),
    ],
)
def test_no_such_table(words: Any, rows: Any, vectors: Any, said: str) -> None:
    with pytest.raises(ValueError) as error:
        WordTable(words, np.array(rows), np.array(vectors))
    assert said in str(error.value)


# There and back


def test_round_trips(tmp_path: Path) -> None:
    model = make_bilm()
    expected = layers_of(model)
    with atomic_directory(tmp_path / "model") as directory:
        save_bilm(model, directory)
    find_weights(tmp_path / "model").check()
    for way, again in {
        "directory": load_bilm(tmp_path / "model"),
        "bytes": from_bytes(to_bytes(model, Card(), None))[0],
        "pickle": pickle.loads(pickle.dumps(model)),
        "copy": copy.deepcopy(model),
    }.items():
        assert same(model, again), way
        assert all((a == b).all() for a, b in zip(expected, layers_of(again), strict=True)), way
        table = again.word_vectors.contents()
        assert (table.words, table.rows.tolist()) == (WORDS, ROWS)
        assert (table.vectors == make_table().vectors).all()
    with atomic_directory(tmp_path / "half") as directory:
        save_bilm(model, directory, half=True)
    again = load_bilm(tmp_path / "half")
    assert again.word_vectors.contents().words == WORDS
    assert max_difference(expected[0], layers_of(again)[0]) < 0.01


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"words": pack_words(["a"] * 11)}, "the word 'a' more than once"),
        ({"words": pack_words(WORDS[1:])}, "The 10 words"),
        ({"words": torch.tensor([200, 255] * 11, dtype=torch.uint8)}, "words of the word vectors:"),
        ({"rows": torch.full((11,), 8, dtype=torch.int32)}, "from 0 to 7; found 11 rows"),
        ({"rows": torch.zeros(10, dtype=torch.int32)}, "'word_vectors.rows' has the shape (10,)"),
        ({"rows": torch.zeros(11)}, "is of the type torch.float32, expected torch.int32"),
        ({"table": torch.zeros(8, 3, dtype=torch.int32)}, "torch.int32, expected float32, float16"),
        ({"table": torch.zeros(8, 4)}, "the config requires (8, 3)"),
        ({"table": torch.full((8, 3), torch.nan)}, "not finite"),
        ({"table": torch.full((8, 3), 1e30)}, "far too large"),
        ({"special": None}, "missing tensors ['word_vectors.special']"),
    ],
)
def test_damaged(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    save_bilm(make_bilm(), tmp_path)
    file = tmp_path / "weights.safetensors"
    tensors = load_file(file) | {f"word_vectors.{name}": t for name, t in change.items()}
    save_file({name: t for name, t in tensors.items() if t is not None}, file)
    with pytest.raises(ValueError) as error:
        load_bilm(tmp_path)
    assert said in str(error.value) and str(file) in str(error.value)


# Settings


def test_config_there_and_back() -> None:
    config = make_config()
    assert BiLMConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert config == BiLMConfig((), 5, 9, 2, token_encoder="vectors", **SIZES)
    assert {"filters", "char_dim", "max_characters_per_token"}.isdisjoint(config.to_dict())
    assert {"token_encoder", *SIZES}.isdisjoint(BiLMConfig(((1, 4),), 4, 8).to_dict())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"token_encoder": "vector"}, "token_encoder is 'vector'; it must be"),
        ({"char_dim": 8}, "['char_dim'] are not for token_encoder = 'vectors'"),
        ({"filters": [[1, 4]], "n_highway": 1}, "['filters', 'n_highway'] are not for"),
        ({"token_encoder": "char_cnn", "filters": [[1, 4]]}, "['n_vectors', 'n_words', "),
        ({"n_words": 0}, "n_words is 0"),
        ({"n_vectors": 2**31}, "n_vectors is 2147483648"),
        ({"vector_dim": 2.5}, "vector_dim is 2.5"),
    ],
)
def test_settings_that_contradict(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as error:
        make_config(**changes)
    assert said in str(error.value)


def test_what_the_config_lacks(tmp_path: Path) -> None:
    config = replace(make_config(), n_vectors=None, vector_dim=None)
    for build in (WordVectors, BiLM):
        with pytest.raises(ValueError, match=r"needs the size.*\['n_vectors', 'vector_dim'\] are"):
            build(config)
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()))
    (tmp_path / "weights.safetensors").touch()
    with pytest.raises(ValueError, match=r"config\.json.*\['n_vectors', 'vector_dim'\]"):
        find_weights(tmp_path).config()


def test_not_in_the_published_layout(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    with pytest.raises(ValueError, match=r"token_encoder = 'vectors'.*--to native"):
        write_published(make_bilm(), tmp_path)
    assert not list(tmp_path.iterdir())
