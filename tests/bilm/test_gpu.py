"""What only a GPU shows: cuDNN's LSTM, its convolutions, and mixed precision."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy

import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.lstm_layer import LSTMLayer
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.sentence_batches import Packing
from spacy_elmo.bilm.torch_precision import without_tf32

pytestmark = pytest.mark.gpu

TOLERANCE = 1e-5
LENGTHS = [7, 30, 1, 30, 12]
P, D = 64, 256


@pytest.fixture(autouse=True)
def tf32() -> Iterator[None]:
    """PyTorch's defaults, under which cuDNN computes in TensorFloat-32; nobody changes them."""
    torch.backends.cudnn.allow_tf32 = True
    yield
    assert torch.backends.cudnn.allow_tf32


def make_config(**changes: object) -> BiLMConfig:
    settings = {
        "filters": [[1, 16], [2, 16], [3, 32], [5, 64]],
        "projection_dim": P,
        "dim": D,
        "n_layers": 2,
        "n_highway": 1,
    }
    return BiLMConfig.from_dict({**settings, **changes})


def make_sentences() -> list[list[str]]:
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefgh", k=rng.randint(1, 12))) for _ in range(200)]
    return [rng.choices(words, k=n) for n in LENGTHS]


def run_lstm(layer: LSTMLayer, device: str, own: bool, mixed: bool = False) -> list[torch.Tensor]:
    """Outputs, final states and all gradients, on the CPU."""
    torch.manual_seed(1)
    layer = deepcopy(layer).to(device)
    dim = layer.bias.shape[1] // 4
    shapes = (2, sum(LENGTHS), P), (2, len(LENGTHS), P), (2, len(LENGTHS), dim)
    inputs = [torch.randn(shape).to(device).requires_grad_() for shape in shapes]
    with pytest.MonkeyPatch.context() as patch, torch.autocast(device, torch.bfloat16, mixed):
        if own:
            patch.setattr(torch.version, "cuda", None)
        outputs = layer(inputs[0], Packing(LENGTHS, device), *inputs[1:])
    with without_tf32(torch.device(device)):
        (outputs[0].square().mean() + outputs[1].mean() + outputs[2].mean()).backward()
    tensors = [*outputs, *(t.grad for t in [*inputs, *layer.parameters()])]
    return [tensor.detach().cpu() for tensor in tensors]


def test_the_lstm_of_cudnn_is_ours_forward_and_backward() -> None:
    torch.manual_seed(0)
    layer = LSTMLayer(make_config()).train()
    cudnn = run_lstm(layer, "cuda", own=False)
    for other in (run_lstm(layer, "cuda", own=True), run_lstm(layer, "cpu", own=True)):
        for ours, theirs in zip(other, cudnn, strict=True):
            torch.testing.assert_close(theirs, ours, rtol=1e-4, atol=TOLERANCE)


@pytest.mark.parametrize("clip", [None, 0.5])
def test_layers_are_those_of_a_cpu(clip: float | None) -> None:
    torch.manual_seed(0)
    model = BiLM(make_config(cell_clip=clip, proj_clip=clip)).eval()
    with torch.no_grad():
        expected, (h, c) = model.read(make_sentences())
        model.to("cuda")
        found, state = model.read(make_sentences())
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=0, atol=TOLERANCE)
    torch.testing.assert_close([s.cpu() for s in state], [h, c], rtol=0, atol=TOLERANCE)


def test_words_cached_on_one_device_are_not_used_on_another() -> None:
    torch.manual_seed(0)
    model = BiLM(make_config()).eval()
    with torch.no_grad():
        for device in ("cpu", "cuda", "cpu"):
            layers, _ = model.to(device).read(make_sentences())
            assert {part.device.type for part in layers} == {device}


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("projects", [True, False])
def test_mixed_precision_rounds_the_products_alone(clip: float | None, projects: bool) -> None:
    torch.manual_seed(0)
    layer = LSTMLayer(make_config(cell_clip=clip, dim=D if projects else P))
    exact, mixed = (run_lstm(layer, "cuda", own=False, mixed=m) for m in (False, True))
    for one, other in zip(exact, mixed, strict=True):
        assert other.dtype == torch.float32
        assert not torch.equal(one, other)
        assert (one - other).norm() / one.norm() < (0.02 if clip is None else 0.3)
