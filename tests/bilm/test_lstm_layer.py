import itertools

import pytest
import torch
from torch.autograd import gradcheck

from spacy_elmo.bilm import lstm_operators
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.lstm_layer import LSTMLayer
from spacy_elmo.bilm.lstm_operators import CuDNNLSTM
from spacy_elmo.bilm.sentence_batches import Packing

P, D = 3, 5
LENGTHS = [2, 4, 1, 4]
CLIPS = list(itertools.product([None, 0.35], [None, 0.15]))


def make_layer(
    projects: bool, cell_clip: float | None, proj_clip: float | None, scale: float = 1.0
) -> LSTMLayer:
    torch.manual_seed(0)
    dim = D if projects else P
    config = BiLMConfig(((1, P),), P, dim, cell_clip=cell_clip, proj_clip=proj_clip)
    layer = LSTMLayer(config)
    with torch.no_grad():
        for parameter in layer.parameters():
            torch.nn.init.normal_(parameter, std=scale)
    return layer.double()


def make_inputs(layer: LSTMLayer) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    dim = layer.bias.shape[1] // 4
    shapes = (2, sum(LENGTHS), P), (2, len(LENGTHS), P), (2, len(LENGTHS), dim)
    return tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)


def apply(layer: LSTMLayer, x, h0, c0, *weights):
    names = [name for name, _ in layer.named_parameters()]
    parameters = dict(zip(names, weights, strict=True))
    arguments = (x, Packing(LENGTHS), h0, c0)
    return torch.func.functional_call(layer, parameters, arguments)


def n_clipped(values: torch.Tensor, limit: float | None) -> int:
    return 0 if limit is None else int((values.abs() == limit).sum())


@pytest.mark.parametrize("projects", [True, False])
@pytest.mark.parametrize(("cell_clip", "proj_clip"), CLIPS)
def test_gradients_of_everything(projects, cell_clip, proj_clip):
    layer = make_layer(projects, cell_clip, proj_clip)
    inputs = make_inputs(layer)
    out, _, c_n = layer(inputs[0], Packing(LENGTHS), *inputs[1:])
    # Some values are clipped and some are not, or the clips' gradients would not be seen.
    if cell_clip is not None:
        assert 0 < n_clipped(c_n, cell_clip) < c_n.numel()
    if proj_clip is not None and projects:
        assert 0 < n_clipped(out, proj_clip) < out.numel()
    # h0 and c0 are among the inputs, h_n and c_n among the outputs.
    assert gradcheck(
        lambda *args: apply(layer, *args), (*inputs, *layer.parameters()), atol=1e-6, rtol=1e-4
    )


@pytest.mark.parametrize("projects", [True, False])
def test_clipped_values_have_no_gradient_in_float32_either(projects):
    # 0.7 is smaller in float32 than in float64: comparing in float64 would find it inside.
    layer = make_layer(projects, cell_clip=0.7, proj_clip=0.7, scale=2.0)
    inputs = make_inputs(layer)
    gradients = []
    for dtype in (torch.float64, torch.float32):
        leaves = [
            tensor.detach().to(dtype).requires_grad_() for tensor in (*inputs, *layer.parameters())
        ]
        out, h_n, c_n = apply(layer, *leaves)
        assert n_clipped(c_n, torch.tensor(0.7, dtype=dtype).item()) > 0
        loss = (out**2).sum() + (h_n**3).sum() + (c_n**3).sum()
        gradients.append(torch.autograd.grad(loss, leaves))
    for double, single in zip(*gradients, strict=True):
        torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("projects", [True, False])
def test_same_as_the_lstm_of_pytorch(projects):
    layer = make_layer(projects, None, None)
    x, h0, c0 = make_inputs(layer)
    packing = Packing(LENGTHS)
    results = []
    for out, h_n, c_n in [
        layer(x, packing, h0, c0),
        CuDNNLSTM(layer)(x, packing, h0, c0),
    ]:
        loss = (out**2).sum() + (h_n**3).sum() + (c_n**3).sum()
        gradients = torch.autograd.grad(loss, [x, h0, c0, *layer.parameters()])
        results.append((out, h_n, c_n, *gradients))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("projects", [True, False])
def test_same_without_gradients(projects):
    layer = make_layer(projects, 0.35, 0.15)
    inputs = make_inputs(layer)
    with_graph = layer(inputs[0], Packing(LENGTHS), *inputs[1:])
    with torch.no_grad():
        without = layer(inputs[0], Packing(LENGTHS), *inputs[1:])
    for ours, theirs in zip(with_graph, without, strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("projects", [True, False])
@pytest.mark.parametrize("n_tokens", [1, 5])
def test_few_tokens_at_once(monkeypatch, projects, n_tokens):
    """Products are those of a stretch of steps; a step of more sentences is one."""
    layer = make_layer(projects, 0.35, 0.15).requires_grad_(False)
    inputs = [tensor.detach() for tensor in make_inputs(layer)]
    at_once = layer(inputs[0], Packing(LENGTHS), *inputs[1:])
    dim = layer.bias.shape[1] // 4
    monkeypatch.setattr(lstm_operators, "BYTES_AT_ONCE", n_tokens * 8 * dim * 8)
    for ours, theirs in zip(layer(inputs[0], Packing(LENGTHS), *inputs[1:]), at_once, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_cudnn_gets_contiguous_states(monkeypatch):
    """It refuses others, such as one state that stands for those of all sentences."""
    layer = make_layer(True, None, None).requires_grad_(False)
    x, h0, c0 = (tensor.detach() for tensor in make_inputs(layer))
    states = [s[:, :1].expand(-1, len(LENGTHS), -1) for s in (h0, c0)]
    expected = layer(x, Packing(LENGTHS), *states)
    given, lstm = [], torch.lstm
    monkeypatch.setattr(torch, "lstm", lambda *args: given.append(args[2]) or lstm(*args))
    found = CuDNNLSTM(layer)(x, Packing(LENGTHS), *states)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
    assert len(given) == 2
    assert all(state.is_contiguous() for states in given for state in states)


def test_frozen_weights_still_pass_gradients_to_the_input():
    layer = make_layer(True, 0.35, 0.15)
    x, h0, c0 = make_inputs(layer)
    expected = torch.autograd.grad(layer(x, Packing(LENGTHS), h0, c0)[0].sum(), [x])[0]
    layer.requires_grad_(False)
    out = layer(x, Packing(LENGTHS), h0.detach(), c0.detach())[0]
    assert torch.equal(torch.autograd.grad(out.sum(), [x])[0], expected)


@pytest.mark.parametrize("projects", [True, False])
@pytest.mark.parametrize(("cell_clip", "proj_clip"), CLIPS)
def test_reading_on_from_a_state_is_reading_in_one_go(projects, cell_clip, proj_clip):
    layer = make_layer(projects, cell_clip, proj_clip).requires_grad_(False)
    x, h0, c0 = (tensor.detach() for tensor in make_inputs(layer))
    x, h0, c0 = x[:, :6], h0[:, :1], c0[:, :1]
    whole = layer(x, Packing([6]), h0, c0)
    first, h, c = layer(x[:, :2], Packing([2]), h0, c0)
    second, h, c = layer(x[:, 2:], Packing([4]), h, c)
    for ours, theirs in zip(whole, (torch.cat([first, second], dim=1), h, c), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_the_state_given_is_not_changed():
    layer = make_layer(True, 0.35, 0.15).requires_grad_(False)
    inputs = [tensor.detach() for tensor in make_inputs(layer)]
    copies = [tensor.clone() for tensor in inputs]
    layer(inputs[0], Packing(LENGTHS), *inputs[1:])
    assert all(map(torch.equal, inputs, copies))


def test_proj_clip_does_nothing_without_a_projection():
    inputs = make_inputs(make_layer(False, None, None))
    results = [
        make_layer(False, None, clip)(inputs[0], Packing(LENGTHS), *inputs[1:])[0]
        for clip in (None, 0.01)
    ]
    assert torch.equal(*results)


@pytest.mark.parametrize("projects", [True, False])
@pytest.mark.parametrize(("cell_clip", "proj_clip"), CLIPS)
def test_products_of_less_precision(projects, cell_clip, proj_clip):
    """Under autocast only the products are rounded: all results are float32, and near."""
    results = []
    for is_mixed in (False, True):
        layer = make_layer(projects, cell_clip, proj_clip, scale=0.3).float()
        inputs = [i.detach().float().requires_grad_() for i in make_inputs(layer)]
        with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
            outputs = layer(inputs[0], Packing(LENGTHS), *inputs[1:])
        sum(o.square().sum() for o in outputs).backward()
        results.append([*outputs, *(t.grad for t in [*inputs, *layer.parameters()])])
    for exact, mixed in zip(*results, strict=True):
        assert mixed.dtype == torch.float32
        assert not torch.equal(mixed, exact)
        difference = (mixed - exact).norm() / exact.norm()
        # A clip cuts off gradients of values that were rounded across it.
        assert difference < (0.02 if (cell_clip, proj_clip) == (None, None) else 0.3)
