"""Directories of weights: names, and that they appear whole or not at all."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.util.files import atomic_directory
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import Card
from spacy_elmo.weights.native import save_bilm

CONFIG = BiLMConfig(filters=((1, 4), (2, 4)), projection_dim=4, dim=8, n_layers=2, n_highway=1)


@pytest.mark.parametrize("half", [False, True])
def test_save_and_load(tmp_path, half):
    model = BiLM(CONFIG)
    with atomic_directory(tmp_path / "model") as directory:
        save_bilm(model, directory, Card({"lang": "en"}, {"LICENSE": "x"}), half=half)
    loaded = load_bilm(tmp_path / "model")
    assert loaded.config == CONFIG
    for name, tensor in model.state_dict().items():
        expected = tensor.half().float() if half else tensor
        assert torch.equal(loaded.state_dict()[name], expected)
    n_bytes = (2 if half else 4) * sum(p.numel() for p in model.parameters())
    size = (tmp_path / "model" / "weights.safetensors").stat().st_size
    assert n_bytes <= size < n_bytes + 4096
    files = {file.name for file in (tmp_path / "model").iterdir()}
    assert files == {"LICENSE", "config.json", "meta.json", "weights.safetensors"}


def test_weights_are_float32_whatever_the_default(tmp_path):
    save_bilm(BiLM(CONFIG), tmp_path, half=True)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        loaded = load_bilm(tmp_path)
    finally:
        torch.set_default_dtype(before)
    assert {tensor.dtype for tensor in loaded.state_dict().values()} == {torch.float32}


def test_tensors_that_do_not_fit_the_config(tmp_path):
    model = BiLM(CONFIG)
    model.initial_state("warm")
    save_bilm(model, tmp_path)
    weights = find_weights(tmp_path)
    other = json.dumps(replace(CONFIG, dim=9).to_dict())
    (tmp_path / "config.json").write_text(other, encoding="utf-8")
    with pytest.raises(ValueError, match=r"weights\.safetensors: tensor .* has the shape"):
        weights.load()
    (tmp_path / "weights.safetensors").unlink()
    with pytest.raises(ValueError, match=r"weights\.safetensors: No such file"):
        weights.load()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int64, torch.float8_e4m3fn])
def test_tensors_of_other_types(tmp_path, dtype):
    """Other floats are read; others are refused, by the type that they have."""
    save_bilm(model := BiLM(CONFIG), tmp_path)
    state = {name: tensor.to(dtype) for name, tensor in model.state_dict().items()}
    save_file(state, tmp_path / "weights.safetensors")
    if dtype == torch.bfloat16:
        loaded = load_bilm(tmp_path).state_dict()
        assert all(torch.equal(loaded[name], state[name].float()) for name in state)
        return
    with pytest.raises(ValueError, match=r"is of the type torch\.(int64|float8_e4m3fn), expected"):
        load_bilm(tmp_path)
