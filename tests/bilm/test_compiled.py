"""The compiled LSTM kernel computes what PyTorch's operators compute."""

from __future__ import annotations

import shutil
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from spacy_elmo.bilm.compiled import lstm as kernel_module
from spacy_elmo.bilm.compiled.lstm import load_kernel
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.lstm_layer import LSTMLayer
from spacy_elmo.bilm.sentence_batches import Packing

LENGTHS = [1, 17, 4, 30, 2, 9, 9, 12, 40, 3, 5, 21, 8, 1, 6, 33, 2, 2, 7, 11]


@pytest.fixture(autouse=True)
def compiler() -> None:
    if not (shutil.which("c++") and (shutil.which("ninja") or find_spec("ninja"))):
        pytest.skip("there is no C++ compiler or no ninja")


@pytest.fixture(params=["float32", "bfloat16"])
def bfloat16(request: pytest.FixtureRequest) -> bool:
    is_bfloat16 = request.param == "bfloat16"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = load_kernel(is_bfloat16)
    if kernel is None:
        pytest.skip(f"the compiled kernel does not run on this CPU in {request.param}")
    return is_bfloat16


def read(layer: LSTMLayer, packing: Packing, bfloat16: bool, *inputs: torch.Tensor) -> list:
    """Outputs, and gradients of all inputs and parameters, of a loss that uses every output."""
    with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16 and layer.compiled):
        outputs = layer(inputs[0], packing, *inputs[1:])
        weights = [torch.linspace(-1, 1, out.numel()).reshape(out.shape) for out in outputs]
        loss = sum((out * weight).sum() for out, weight in zip(outputs, weights, strict=True))
        gradients = torch.autograd.grad(loss, [*inputs, *layer.parameters()])
        with torch.no_grad():
            predicted = layer(inputs[0], packing, *inputs[1:])
    return [*outputs, *gradients, *predicted]


@pytest.mark.parametrize("n_threads", [1, 4])
@pytest.mark.parametrize(
    "dim, projection_dim, clip", [(64, 32, None), (64, 64, None), (96, 10, None), (64, 32, 0.5)]
)
def test_outputs_and_gradients(
    dim: int, projection_dim: int, clip: float | None, n_threads: int, bfloat16: bool
) -> None:
    torch.manual_seed(0)
    config = BiLMConfig([(1, 8)], projection_dim, dim, cell_clip=clip, proj_clip=clip)
    layer, packing = LSTMLayer(config), Packing(LENGTHS)
    n, b = sum(LENGTHS), len(LENGTHS)
    inputs = [torch.randn(2, n, projection_dim), torch.randn(2, b, projection_dim)]
    inputs = [tensor.requires_grad_() for tensor in (*inputs, torch.randn(2, b, dim))]
    expected = read(layer, packing, bfloat16, *inputs)
    layer.compiled = True
    threads = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        found = read(layer, packing, bfloat16, *inputs)
    finally:
        torch.set_num_threads(threads)
    # bfloat16 has 8 bits of precision; a clip passes a gradient or none, so values near it differ
    bound = (1e-1 if clip else 1e-2) if bfloat16 else 2e-6
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        assert float((ours - theirs).detach().norm() / theirs.detach().norm()) < bound


def test_without_a_compiler_it_falls_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = tmp_path / "broken.cpp"
    source.write_text("#error none\n", "utf-8")
    monkeypatch.setattr(kernel_module, "SOURCE", source)
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "cache"))
    load_kernel.cache_clear()
    layer, packing = LSTMLayer(BiLMConfig([(1, 8)], 32, 64)), Packing([3, 2])
    x, h, c = torch.randn(2, 5, 32), torch.randn(2, 2, 32), torch.randn(2, 2, 64)
    expected = layer(x, packing, h, c)[0]
    layer.compiled = True
    try:
        with pytest.warns(UserWarning, match="The compiled LSTM kernel is not available"):
            assert torch.equal(layer(x, packing, h, c)[0], expected)
    finally:
        load_kernel.cache_clear()


@pytest.mark.timeout(300)  # it waited for ever
def test_a_build_that_was_killed_is_not_waited_for(bfloat16: bool) -> None:
    lock = Path(load_kernel(bfloat16).__file__).parent / "lock"
    lock.touch()  # as PyTorch leaves it
    load_kernel.cache_clear()
    assert load_kernel(bfloat16) is not None
    assert not lock.exists()
