"""Directories of weights: names, and that they appear whole or not at all."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.util.files import atomic_directory
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import Card
from spacy_elmo.weights.native import save_bilm

CONFIG = BiLMConfig(filters=((1, 4), (2, 4)), projection_dim=4, dim=8, n_layers=2, n_highway=1)


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.iterdir())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("half", [False, True])
def test_weights_are_loaded_under_autocast(tmp_path, dtype, half):
    model = BiLM(CONFIG)
    with torch.no_grad():
        model.lstm[0].weight_ih.fill_(300.0)  # the product of two is beyond float16
        model.lstm[0].weight_hh.fill_(300.0)
    with atomic_directory(tmp_path / "model") as directory:
        save_bilm(model, directory, half=half)
    expected = load_bilm(tmp_path / "model").state_dict()
    with torch.autocast("cpu", dtype):
        found = load_bilm(tmp_path / "model").state_dict()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


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
    assert names(tmp_path / "model") == [
        "LICENSE",
        "config.json",
        "meta.json",
        "weights.safetensors",
    ]


def test_the_check_reads_names_and_shapes(tmp_path):
    model = BiLM(CONFIG)
    model.warm_state()
    save_bilm(model, tmp_path)
    weights = find_weights(tmp_path)
    weights.check()
    other = json.dumps(replace(CONFIG, dim=9).to_dict())
    (tmp_path / "config.json").write_text(other, encoding="utf-8")
    with pytest.raises(ValueError, match=r"weights\.safetensors: tensor .* has the shape"):
        weights.check()
    (tmp_path / "weights.safetensors").unlink()
    with pytest.raises(ValueError, match=r"weights\.safetensors: there is no such file"):
        weights.check()
