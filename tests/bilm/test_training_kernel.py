"""The kernel computes the gradients of an LSTM layer as PyTorch's operators do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.kernel import library
from spacy_elmo.bilm.kernel.library import VARIABLE, load_kernel
from spacy_elmo.bilm.kernel.training import KernelTrainingLSTM
from spacy_elmo.bilm.lstm_layer import LSTMLayer
from spacy_elmo.bilm.lstm_pytorch import OperatorLSTM
from spacy_elmo.bilm.lstm_weights import LSTMWeights
from spacy_elmo.bilm.sentence_batches import Packing

from .helpers import SETS

LENGTHS = [1, 17, 4, 30, 2, 9, 9, 12, 40, 3, 5, 21, 8, 1, 6, 33, 2, 2, 7, 11]

pytestmark = pytest.mark.usefixtures("kernel")


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
def test_any_size(data: st.DataObject) -> None:
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
def test_each_instruction_set_computes_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit."""
    layer = make_layer(19, 37, 0.5)
    expected = train(layer, LENGTHS, by_kernel)
    if name not in library.instruction_sets(library.open_library()[0]):
        pytest.skip(f"this CPU has no {name}")
    monkeypatch.setenv(VARIABLE, name)
    load_kernel.cache_clear()
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


def test_a_nan_is_not_hidden() -> None:
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
