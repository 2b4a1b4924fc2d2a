"""The kernel computes what PyTorch's operators compute, and their gradients, and the same bits in
every way."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.int8 import round_gates
from spacy_elmo.bilm.kernel import library
from spacy_elmo.bilm.kernel.library import VARIABLE, load_kernel
from spacy_elmo.bilm.kernel.lstm import KernelLSTM
from spacy_elmo.bilm.kernel.training import KernelTrainingLSTM
from spacy_elmo.bilm.kernel.words import KernelCharCNN
from spacy_elmo.bilm.lstm_layer import LSTMLayer
from spacy_elmo.bilm.lstm_pytorch import OperatorLSTM
from spacy_elmo.bilm.lstm_weights import LSTMWeights
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.sentence_batches import Packing, id_tensor

# The instruction sets of the kernel
SETS = ["avx2", "avxvnni", "avx512", "avx512vnni", "neon", "neondot"]

pytestmark = pytest.mark.usefixtures("kernel")
KINDS = ["half", "single", "int8"]  # of weights
CONFIG = BiLMConfig(
    ((1, 5), (2, 7), (3, 9)), 12, 37, 2, char_dim=4, n_highway=1, cell_clip=2.0, proj_clip=1.5
)


def make_bilm(kind: str, config: BiLMConfig = CONFIG) -> BiLM:
    torch.manual_seed(0)
    bilm = BiLM(config).eval()
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.mul_(2)  # so that some values are clipped, and gates saturated
            if kind == "half":
                parameter.copy_(parameter.half())
    return round_gates(bilm) if kind == "int8" else bilm


def random_docs(n: int, seed: int = 0) -> list[list[str]]:
    """Sentences of 0 to 60 words, some of them of one repeated word."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdeéü강🙂", k=rng.randint(1, 12))) for _ in range(300)]
    return [
        [rng.choice(words)] * rng.randint(1, 60) if rng.random() < 0.05
        else rng.choices(words, k=int(60 * rng.random() ** 3))
        for _ in range(n)
    ]  # fmt: skip


@torch.no_grad()
def read(bilm: BiLM, sentences: list[list[str]]) -> list[torch.Tensor]:
    return bilm.read(sentences, batch_words=500)[0]


def are_equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))


def choose(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instructions for the kernel from now on."""
    if name not in library.instruction_sets(library.open_library()[0]):
        pytest.skip(f"this CPU has no {name}")
    monkeypatch.setenv(VARIABLE, name)
    load_kernel.cache_clear()


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_is_the_same_alone_among_others_and_in_threads(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit, a thousand sentences."""
    bilm, sentences = make_bilm(kind), random_docs(1000)
    together = read(bilm, sentences)
    assert are_equal(together, [read(bilm, [words])[0] for words in sentences])
    order = random.Random(1).sample(range(1000), 1000)
    shuffled = read(bilm, [sentences[i] for i in order])
    assert are_equal(shuffled, [together[i] for i in order])
    monkeypatch.setattr("spacy_elmo.bilm.model.LAYER_WORK_PER_THREAD", 1)
    bilm.n_threads = 3
    assert are_equal(read(bilm, sentences), together)
    with ThreadPoolExecutor(4) as pool:  # that share the biLM, and begin with an empty cache
        bilm.clear_caches()
        parts = pool.map(
            lambda start: read(bilm, sentences[start : start + 250]), range(0, 1000, 250)
        )
        assert are_equal([layers for part in parts for layers in part], together)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SETS)
def test_each_instruction_set_computes_the_same(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit; a biLM that goes on to another set packs its weights anew."""
    bilm, sentences = make_bilm(kind), random_docs(60)
    expected = read(bilm, sentences)
    choose(name, monkeypatch)
    bilm.word_cache.clear()
    forced = load_kernel()
    assert forced is not None and forced.name == name
    assert are_equal(read(bilm, sentences), expected)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_layer_of_any_size(data: st.DataObject) -> None:
    """As the operators compute it in double precision."""
    draw, clip = data.draw, st.sampled_from([None, 0.5])
    P = draw(st.integers(1, 70))
    D = draw(st.sampled_from([P, P + 1, P + 20, 90]).filter(lambda D: D >= P))
    torch.manual_seed(draw(st.integers(0, 99)))
    layer = LSTMLayer(BiLMConfig(((1, P),), P, D, cell_clip=draw(clip), proj_clip=draw(clip)))
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=40))
    packing = Packing(lengths)
    shapes = (2, sum(lengths), P), (2, len(lengths), P), (2, len(lengths), D)
    x, h, c = (torch.randn(shape) for shape in shapes)
    kernel = load_kernel()
    assert kernel is not None
    with torch.no_grad():
        found = KernelLSTM(layer.weights(), kernel)(x, packing, h, c)
        exact = OperatorLSTM(layer.double().weights(), torch.float64)
        expected = exact(x.double(), packing, h.double(), c.double())
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_words_of_any_encoder(data: st.DataObject) -> None:
    """As the operators compute them in double precision."""
    draw = data.draw
    widths = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4, unique=True))
    filters = tuple((width, draw(st.integers(1, 40))) for width in widths)
    config = BiLMConfig(
        filters,
        draw(st.integers(1, 40)),
        40,
        char_dim=draw(st.integers(1, 20)),
        n_highway=draw(st.integers(0, 2)),
        activation=draw(st.sampled_from(["relu", "tanh"])),
        max_characters_per_token=draw(st.integers(7, 50)),
    )
    torch.manual_seed(draw(st.integers(0, 99)))
    encoder = BiLM(config).eval().char_cnn
    words = draw(st.lists(st.text(max_size=60), min_size=1, max_size=9))
    ids, kernel = id_tensor(*encoder.to_ids(words)), load_kernel()
    assert kernel is not None
    with torch.no_grad():
        found = KernelCharCNN(encoder, kernel)(ids)
        expected = encoder.double()(ids)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_not_hidden(kind: str, value: float) -> None:
    """A NaN, or an infinity that a quantised number cannot hold, gives NaN in its row alone."""
    bilm, packing = make_bilm(kind), Packing([2, 2])
    with torch.no_grad():
        lstm = bilm.parts()[1][0]
        x, h, c = torch.randn(2, 4, 12), torch.randn(2, 2, 12), torch.randn(2, 2, 37)
        x[:, 0, 5] = value  # the first word of the first sentence
        out, _, _ = lstm(x, packing, h, c)
    assert out[:, 0].isnan().any() or (value == np.inf and kind != "int8")
    assert out[:, 1].isfinite().all()
    if kind == "int8":
        assert out[:, 0].isnan().all() and out[:, 2].isnan().all()


def test_other_weights_are_packed_anew() -> None:
    bilm, sentences = make_bilm("single"), random_docs(20)
    with torch.no_grad():
        before = read(bilm, sentences)
        bilm.lstm[0].weight_hh.mul_(0.5)
        assert not are_equal(read(bilm, sentences), before)
        bilm.lstm[0].weight_hh.mul_(2.0)
        assert are_equal(read(bilm, sentences), before)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x, h, c: (x[:, :4], h, c),
        lambda x, h, c: (x, h[:, :1], c),
        lambda x, h, c: (x, h, c[:, :, :36]),
        lambda x, h, c: (x, h.half(), c),
    ],
)
@pytest.mark.parametrize("with_gradients", [False, True])
def test_sizes_are_checked_before_each_call(wrong: Callable, with_gradients: bool) -> None:
    with torch.set_grad_enabled(with_gradients):
        lstm = make_bilm("single").parts()[1][0]
    given = torch.randn(2, 5, 12), torch.randn(2, 2, 12), torch.randn(2, 2, 37)
    with pytest.raises(ValueError, match=r"shape|float32"):
        lstm(*(wrong(*given)[:1]), Packing([3, 2]), *(wrong(*given)[1:]))


@pytest.mark.parametrize("sizes", [[], [2, 3], [2, 2, 2, -1]])
@pytest.mark.parametrize("with_gradients", [False, True])
def test_packings_are_checked_before_each_call(sizes: list[int], with_gradients: bool) -> None:
    """Steps that do not fall would be written beyond the states."""
    with torch.set_grad_enabled(with_gradients):
        lstm = make_bilm("single").parts()[1][0]
    packing = Packing([3, 2])
    packing.batch_sizes = sizes
    with pytest.raises(ValueError, match="steps of 2 sentences"):
        lstm(torch.randn(2, 5, 12), packing, torch.randn(2, 2, 12), torch.randn(2, 2, 37))


@pytest.mark.parametrize("part", ["embedding", "convolutions", "projection"])
def test_parts_of_another_type(part: str) -> None:
    """C takes all weights for float32."""
    bilm = make_bilm("single")
    getattr(bilm.char_cnn, part).half()
    with torch.no_grad(), pytest.raises(ValueError, match=r"float32 weights on a CPU.*float16"):
        bilm.read([["dog"]])


def test_characters_that_there_are_not() -> None:
    encoder = make_bilm("single").char_cnn
    with torch.no_grad():
        for wrong in (0, 262):
            with pytest.raises(ValueError, match="no embedding"):
                KernelCharCNN(encoder, load_kernel())(torch.full((1, 5), wrong))
        with pytest.raises(ValueError, match="int64"):
            KernelCharCNN(encoder, load_kernel())(torch.ones(1, 5, dtype=torch.int32))


def test_without_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It warns once, and PyTorch's operators give the same vectors but for their rounding."""
    bilm, sentences = make_bilm("single"), random_docs(20)
    expected = read(bilm, sentences)
    monkeypatch.setattr(library, "LIBRARY", tmp_path / "kernel.so")
    load_kernel.cache_clear()
    with pytest.warns(UserWarning, match="no library kernel.so in .*several times slower") as said:
        found = read(bilm, sentences), read(bilm, sentences)
    assert len(said) == 1 and are_equal(*found)
    for ours, theirs in zip(found[0], expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


def test_a_stale_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "source_hash", lambda: "0" * 16)
    load_kernel.cache_clear()
    with pytest.warns(UserWarning, match="was built from another source"):
        assert load_kernel() is None


def test_the_instructions_that_the_user_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "sse9")
    load_kernel.cache_clear()
    with pytest.raises(ValueError, match="SPACY_ELMO_KERNEL is 'sse9', but this CPU has"):
        load_kernel()
    monkeypatch.setenv(VARIABLE, "none")
    assert load_kernel() is None


def test_int8_without_the_kernel_rounds_the_inputs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    bilm, sentences = make_bilm("int8"), random_docs(40)
    found = read(bilm, sentences)
    monkeypatch.setattr("spacy_elmo.bilm.model.load_kernel", lambda: None)
    operators = read(bilm, sentences)
    bilm.config = replace(bilm.config, int8=False)
    exact = read(bilm, sentences)

    def distance(one: list[torch.Tensor], other: list[torch.Tensor]) -> float:
        return float((torch.cat(one, dim=1) - torch.cat(other, dim=1)).norm())

    assert distance(found, operators) < 0.05 * distance(found, exact)


# Gradients

LENGTHS = [1, 17, 4, 30, 2, 9, 9, 12, 40, 3, 5, 21, 8, 1, 6, 33, 2, 2, 7, 11]


def make_layer(P: int, D: int, clip: float | None = None) -> LSTMLayer:
    torch.manual_seed(0)
    layer = LSTMLayer(BiLMConfig(((1, P),), P, D, cell_clip=clip, proj_clip=clip))
    torch.nn.init.normal_(layer.bias)
    return layer


def by_kernel(weights: LSTMWeights) -> KernelTrainingLSTM:
    kernel = load_kernel()
    assert kernel is not None
    return KernelTrainingLSTM(weights, kernel, torch.float32)


def train(layer: LSTMLayer, lengths: list[int], make: Callable) -> list[torch.Tensor]:
    """Outputs and final states, and gradients of all that is given, of a loss of all outputs."""
    torch.manual_seed(1)
    (P, D), n, b = (layer.config.projection_dim, layer.config.dim), sum(lengths), len(lengths)
    of = layer.bias
    inputs = [torch.randn(s).to(of).requires_grad_() for s in [(2, n, P), (2, b, P), (2, b, D)]]
    outputs = make(layer.weights())(inputs[0], Packing(lengths), *inputs[1:])
    loss = sum((out * torch.randn(out.shape).to(of)).sum() for out in outputs)
    return [*outputs, *torch.autograd.grad(loss, [*inputs, *layer.parameters()])]


def assert_near(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape and ours.dtype == torch.float32
        assert (ours - theirs).norm() <= 3e-6 * theirs.norm()


def by_operators(weights: LSTMWeights) -> OperatorLSTM:
    return OperatorLSTM(weights, weights.ih.dtype)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_gradients_of_any_size(data: st.DataObject) -> None:
    P = data.draw(st.integers(1, 70))
    D = data.draw(st.sampled_from([P, P + 1, P + 20, 90]).filter(lambda dim: dim >= P))
    lengths = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=40))
    layer = make_layer(P, D, data.draw(st.sampled_from([None, 0.5])))
    torch.set_num_threads(data.draw(st.sampled_from([1, 4])))
    try:
        found = train(layer, lengths, by_kernel)
    finally:
        torch.set_num_threads(1)
    assert_near(found, train(layer.double(), lengths, by_operators))


@pytest.mark.parametrize("name", SETS)
def test_each_instruction_set_learns_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit."""
    layer = make_layer(19, 37, 0.5)
    expected = train(layer, LENGTHS, by_kernel)
    choose(name, monkeypatch)
    assert all(map(torch.equal, train(layer, LENGTHS, by_kernel), expected))


def test_a_layer_that_learns_is_computed_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And by PyTorch's operators where there is no library: to the same gradients."""
    layer = make_layer(16, 32)
    found = train(layer, LENGTHS, lambda _: layer)
    assert all(map(torch.equal, found, train(layer, LENGTHS, by_kernel)))
    monkeypatch.setenv(VARIABLE, "none")
    load_kernel.cache_clear()
    others = train(layer, LENGTHS, lambda _: layer)
    assert_near(others, found)
    assert not all(map(torch.equal, others, found))


def test_a_second_backward_pass_gives_the_same() -> None:
    """The gradients that are given stay as they are."""
    layer = make_layer(8, 24)
    x = torch.randn(2, sum(LENGTHS), 8, requires_grad=True)
    states = torch.zeros(2, len(LENGTHS), 8), torch.zeros(2, len(LENGTHS), 24)
    outputs = by_kernel(layer.weights())(x, Packing(LENGTHS), *states)
    gradients = [torch.ones_like(each) for each in outputs]
    first, second = (
        torch.autograd.grad(outputs, [x], gradients, retain_graph=True)[0] for _ in range(2)
    )
    assert torch.equal(first, second)
    assert all(torch.equal(each, torch.ones_like(each)) for each in gradients)


def test_a_nan_is_not_hidden_from_what_learns() -> None:
    layer, x = make_layer(8, 24), torch.randn(2, 4, 8)
    x[:, 0, 3] = torch.nan
    states = torch.zeros(2, 2, 8), torch.zeros(2, 2, 24)
    out = by_kernel(layer.weights())(x.requires_grad_(), Packing([2, 2]), *states)[0]
    assert out[:, 0].isnan().all() and out[:, 1].isfinite().all()


def test_inputs_that_are_not_contiguous() -> None:
    layer, packing = make_layer(8, 24), Packing([3, 2])
    x, h, c = torch.randn(8, 5, 2).permute(2, 1, 0), torch.randn(2, 2, 8), torch.randn(2, 2, 24)
    expected = layer(x.contiguous(), packing, h, c)
    found = layer(x, packing, h.mT.contiguous().mT, c)
    assert all(map(torch.equal, found, expected))
