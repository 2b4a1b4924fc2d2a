import itertools
import random
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.kernel.library import load_kernel
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.word_cache import ENTRY_BYTES
from spacy_elmo.weights.convert.published import datasets_of, from_options, read_datasets

from . import reference
from .helpers import make_options, max_difference, run_bilm

TOLERANCE = 1e-5
SENTENCES = [
    ["the", "cat", "sat", "on", "the", "mat", "."],
    [],
    ["고양이", "naïve", "", "x" * 46, "é" * 30],
    ["a"],
    ["</S>", "\ud83d", "<S>", "x" * 47],
    ["a"] * 12,
]
# Every way of writing the options: 48 LSTMs and 24 char-CNNs, each LSTM with one char-CNN.
LSTMS = [
    {"n_layers": n_layers, "dim": dim, "use_skip_connections": skip, **clips}
    for n_layers, dim, skip, clips in itertools.product(
        [1, 2, 3],
        [5, 9],  # 5: as large as the projection
        [True, False],
        [{}, {"cell_clip": 0.9}, {"proj_clip": 0.8}, {"cell_clip": 0.9, "proj_clip": 0.8}],
    )
]
CHAR_CNNS = [
    {"activation": activation, "n_highway": n_highway, "filters": filters, **size}
    for activation, n_highway, filters, size in itertools.product(
        ["relu", "tanh"],
        [0, 1, 2],
        [[[1, 2], [2, 3], [4, 6]], [[1, 2], [3, 3]]],  # the second needs no projection
        [{"max_characters_per_token": 50}, {"max_characters_per_token": 8}],
    )
]
random.Random(0).shuffle(CHAR_CNNS)
OPTIONS = [make_options(**lstm, **cnn) for lstm, cnn in zip(LSTMS, 2 * CHAR_CNNS, strict=True)]


def make_pair(options, seed=0) -> tuple[BiLM, reference.Weights]:
    weights = reference.random_weights(options, np.random.default_rng(seed), scale=2.0)
    model = BiLM(from_options(options))
    read_datasets(weights, datasets_of(model))
    return model.eval(), weights


def random_state(config: BiLMConfig, n_sentences: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(1)
    shape = (config.n_layers, 2, n_sentences)
    h = rng.normal(0, 0.5, (*shape, config.projection_dim))
    c = rng.normal(0, 0.5, (*shape, config.dim))
    return torch.from_numpy(h).float(), torch.from_numpy(c).float()


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("start", ["zero", "state"])
def test_same_as_the_reference(options, start):
    model, weights = make_pair(options)
    state = random_state(model.config, len(SENTENCES)) if start == "state" else None
    ours, (h, c) = run_bilm(model, SENTENCES, state)
    for row, words in enumerate(SENTENCES):
        begin = None if state is None else tuple(s[:, :, row].double().numpy() for s in state)
        theirs, (their_h, their_c) = reference.read_sentence(options, weights, words, begin)
        assert max_difference(ours[row], theirs) <= TOLERANCE
        assert max_difference(h[:, :, row].numpy(), their_h) <= TOLERANCE
        assert max_difference(c[:, :, row].numpy(), their_c) <= TOLERANCE


def test_dropout_is_for_training_alone():
    torch.manual_seed(0)
    config = from_options(make_options())
    model = BiLM(config, dropout=0.5)
    first, second = (run_bilm(model, SENTENCES[:1])[0][0] for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])  # the tokens' vectors have none
    assert (np.abs(first[1:] - second[1:]).max(axis=(1, 2)) > 1e-3).all()
    model.eval()
    first, second = (run_bilm(model, SENTENCES[:1])[0][0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


# ---- BiLM.read: the same from lists of words, with the boundaries, batches and cache inside


@pytest.mark.parametrize("batch_words", [1, 20, 4096])
@pytest.mark.parametrize("start", ["zero", "state", "one state for all"])
def test_read_is_forward(batch_words, start):
    model, _ = make_pair(make_options(cell_clip=0.9, proj_clip=0.8))
    state = each = None
    if start != "zero":
        n = 1 if start == "one state for all" else len(SENTENCES)
        state = random_state(model.config, n)
        each = tuple(s.expand(-1, -1, len(SENTENCES), -1) for s in state)
    expected, (h, c) = run_bilm(model, SENTENCES, each)
    for _ in range(2):  # the second time from the word cache
        with torch.no_grad():
            layers, ends = model.read(SENTENCES, state, batch_words)
        for ours, theirs in zip(layers, expected, strict=True):
            assert max_difference(ours.numpy(), theirs) <= TOLERANCE
        torch.testing.assert_close(ends, (h, c), rtol=0, atol=TOLERANCE)
    for ours, theirs in zip(model.read(SENTENCES, state)[0], expected, strict=True):
        assert ours.requires_grad and max_difference(ours.detach().numpy(), theirs) <= TOLERANCE


# Multiples of 32, as of all biLMs in use.
SIZES_OF_VECTORS = {"filters": [[1, 16], [2, 16], [4, 32]], "projection_dim": 32, "dim": 64}


def count_tokens(model: BiLM) -> list[int]:
    """How many tokens each pass reads, boundaries included."""
    seen: list[int] = []
    model.register_forward_pre_hook(lambda _, arguments: seen.append(len(arguments[1])))
    return seen


def assert_same(ours, theirs):
    """To the last bit by the kernel; PyTorch's products are rounded by the number of their rows."""
    bound = 0 if load_kernel() is not None else TOLERANCE
    torch.testing.assert_close(ours, theirs, rtol=bound, atol=bound)


@pytest.mark.parametrize("start", [None, 1])
def test_a_sentence_that_occurs_five_times_is_read_once(start):
    model, _ = make_pair(make_options(**SIZES_OF_VECTORS))
    state = start and random_state(model.config, start)
    seen = count_tokens(model)
    sentences = [["a", "cat"], ["a", "dog", "."], *[["a", "cat"]] * 4, []]
    with torch.no_grad():
        layers, (h, c) = model.read(sentences, state)
        assert sum(seen) == 4 + 5 + 2
        for i, words in enumerate(sentences):
            [expected], (h_1, c_1) = model.read([words], state)
            assert_same(layers[i], expected)
            assert_same((h[:, :, i], c[:, :, i]), (h_1[:, :, 0], c_1[:, :, 0]))


def test_copies_of_a_sentence_differ_in_their_states_and_in_what_drops_out():
    model = BiLM(from_options(make_options()), dropout=0.5)
    (one, other), _ = model.read([["a", "cat"]] * 2)
    assert not torch.equal(one, other)
    (one, other), _ = model.eval().read([["a", "cat"]] * 2, random_state(model.config, 2))
    assert not torch.equal(one, other)


def test_gradients_of_copies_of_a_sentence_add_up():
    model, _ = make_pair(make_options())
    sentences = [["a", "cat"], ["a", "dog"], ["a", "cat"]]
    alone = [model.read([words])[0][0] for words in sentences]
    gradients = []
    for layers in (model.read(sentences)[0], alone):
        loss = sum((i + 1) * part.sum() for i, part in enumerate(layers))
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("by", ["kernel", "operators"])
def test_read_under_autocast_and_outside(by, monkeypatch):
    """In turn, with words that are known and new: each as by a copy that knows no word yet."""
    if by == "operators":
        monkeypatch.setattr("spacy_elmo.bilm.model.load_kernel", lambda: None)
    model, _ = make_pair(make_options())
    outside, bfloat16 = torch.autocast("cpu", enabled=False), torch.autocast("cpu", torch.bfloat16)
    with torch.no_grad():
        exact = model.read(SENTENCES)[0]
        for mode in (bfloat16, torch.autocast("cpu", torch.float16), bfloat16, outside, bfloat16):
            with mode:
                for _ in range(2):
                    found, expected = model.read(SENTENCES)[0], deepcopy(model).read(SENTENCES)[0]
                    assert all(map(torch.equal, found, expected))
                    model.read([*SENTENCES, ["new", "words"]])
            for ours, theirs in zip(found, exact, strict=True):
                assert ours.dtype == torch.float32
                torch.testing.assert_close(ours, theirs, rtol=0.1, atol=0.1)
            # The kernel computes in float32 whatever PyTorch's products are rounded to.
            is_same = mode is outside or (by == "kernel" and load_kernel() is not None)
            assert torch.equal(found[0], exact[0]) == is_same


def change_by_loading(model, assign=False):
    model.load_state_dict(make_pair(make_options(), seed=1)[0].state_dict(), assign=assign)


def change_by_an_optimizer(model):
    with torch.enable_grad():
        model.read([["cat"]])[0][0].square().sum().backward()
    torch.optim.SGD(model.parameters(), 0.01).step()


CHANGES = [
    change_by_loading, partial(change_by_loading, assign=True), change_by_an_optimizer, BiLM.double
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_words_are_forgotten_when_the_weights_change(change):
    model, _ = make_pair(make_options())
    with torch.no_grad():
        before = model.read([["cat"]])[0][0]
        change(model)
        after = model.read([["cat"]])[0][0]
        [expected], _ = run_bilm(model, [["cat"]])
    assert max_difference(after.numpy(), expected) <= 1e-6
    if change is not BiLM.double:
        assert max_difference(before.numpy(), expected) > 1e-3


def test_the_word_cache_stays_within_its_bound():
    model, _ = make_pair(make_options())
    model.word_cache.max_bytes = 16 * (4 * 5 + ENTRY_BYTES)  # sixteen words
    rng = random.Random(0)
    for _ in range(50):  # also of more words than it can hold
        words = rng.sample([f"word{k}" for k in range(30)], rng.randint(1, 20))
        with torch.no_grad():
            layers, _ = model.read([words])
        [expected], _ = run_bilm(model, [words])
        assert max_difference(layers[0].numpy(), expected) <= TOLERANCE
        assert len(model.word_cache) <= 16
