import itertools
from functools import partial

import pytest
import torch
from torch.autograd import gradcheck

from spacy_elmo.bilm import lstm_pytorch
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.lstm_layer import LSTMLayer, pick_backend
from spacy_elmo.bilm.lstm_pytorch import CuDNNLSTM, OperatorLSTM
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


def test_the_gradients_that_are_given_are_not_written_to():
    layer = make_layer(True, 0.35, 0.15)
    inputs = make_inputs(layer)
    outputs = layer(inputs[0], Packing(LENGTHS), *inputs[1:])
    gradients = [torch.ones_like(each) for each in outputs]
    torch.autograd.grad(outputs, inputs, gradients)
    assert all((each == 1).all() for each in gradients)


@pytest.mark.parametrize("projects", [True, False])
def test_clipped_values_have_no_gradient_in_float32_either(projects):
    # 0.7 is smaller in float32 than in float64: comparing in float64 would find it inside.
    layer = make_layer(projects, cell_clip=0.7, proj_clip=0.7, scale=2.0)
    given, gradients = (*make_inputs(layer), *layer.parameters()), []
    for dtype in (torch.float64, torch.float32):
        leaves = [tensor.detach().to(dtype).requires_grad_() for tensor in given]
        out, h_n, c_n = apply(layer, *leaves)
        assert n_clipped(c_n, torch.tensor(0.7, dtype=dtype).item()) > 0
        loss = (out**2).sum() + (h_n**3).sum() + (c_n**3).sum()
        gradients.append(torch.autograd.grad(loss, leaves))
    for double, single in zip(*gradients, strict=True):
        torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-4)


WAYS = {  # made of a layer, and how far from the operators with gradients
    "operators, float64": (partial(pick_backend, dtype=torch.float64), 0),
    "operators, few tokens at once": (
        lambda layer: OperatorLSTM(layer.weights(), torch.float32),
        1e-6,
    ),
    "operators, bfloat16": (lambda layer: OperatorLSTM(layer.weights(), torch.bfloat16), 1e-2),
    "cuDNN's": (lambda layer: CuDNNLSTM(layer.weights()), 1e-6),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("projects", [True, False])
@pytest.mark.parametrize(("cell_clip", "proj_clip"), CLIPS)
def test_all_ways_compute_the_same_without_gradients(
    name, projects, cell_clip, proj_clip, monkeypatch
):
    if name == "cuDNN's" and (cell_clip or proj_clip):
        pytest.skip("it has no clips")
    dtype = torch.float64 if name.endswith("64") else torch.float32
    layer = make_layer(projects, cell_clip, proj_clip, scale=0.3).to(dtype)
    x, h0, c0 = (tensor.detach().to(dtype) for tensor in make_inputs(layer))
    expected = layer(x.requires_grad_(), Packing(LENGTHS), h0, c0)
    if "few" in name:  # products are those of a stretch of steps; a step of more sentences is one
        monkeypatch.setattr(lstm_pytorch, "BYTES_AT_ONCE", 3 * 8 * D * 4)
    make, bound = WAYS[name]
    given = x.detach(), h0.clone(), c0.clone()
    with torch.no_grad():
        found = make(layer)(given[0], Packing(LENGTHS), *given[1:])
    assert all(map(torch.equal, given, (x, h0, c0)))  # not written to
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == dtype
        assert (ours - theirs).norm() <= bound * theirs.norm()
        assert not (bound == 1e-2 and torch.equal(ours, theirs))
