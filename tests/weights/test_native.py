"""Directories of weights: their names and numbers, those of gates in int8, too."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.fingerprint import fingerprint
from spacy_elmo.bilm.int8 import SCALE, is_gate, round_gates
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.util.files import atomic_directory, read_json
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import WEIGHTS, Card
from spacy_elmo.weights.native import save_bilm
from spacy_elmo.weights.saved import from_bytes, to_bytes

CONFIG = BiLMConfig(filters=((1, 4), (2, 4)), projection_dim=4, dim=8, n_layers=2, n_highway=1)


def rounded() -> BiLM:
    return round_gates(BiLM(replace(CONFIG, initial_state="warm")).eval())


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("int8", [False, True])
def test_save_and_load(tmp_path, half, int8):
    model = rounded() if int8 else BiLM(CONFIG)
    model.initial_state()
    with atomic_directory(tmp_path / "model") as directory:
        save_bilm(model, directory, Card({"lang": "en"}, {"LICENSE": "x"}), half=half)
    stored, loaded = load_file(tmp_path / "model" / WEIGHTS), load_bilm(tmp_path / "model")
    assert loaded.config == model.config
    assert read_json(tmp_path / "model" / "config.json").get("int8", False) == int8
    for name, tensor in model.state_dict().items():
        is_int8 = int8 and is_gate(name)
        found, expected = loaded.state_dict()[name], tensor.half().float() if half else tensor
        assert found.dtype == torch.float32
        assert torch.equal(found, tensor if is_int8 else expected), name
        assert (stored[name].dtype == torch.int8) == is_int8
        assert is_int8 or not half or stored[name].dtype == torch.float16
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


# Gates in int8


def test_bytes_of_an_int8_component():
    bilm = rounded()
    loaded, _, _ = from_bytes(to_bytes(bilm, Card(), None))
    assert loaded.config.int8 and fingerprint(loaded) == fingerprint(bilm)
    with torch.no_grad():
        ours, theirs = (model.read([["a", "bank"]])[0][0] for model in (loaded, bilm))
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.update({"lstm.0.weight_ih": t["lstm.0.weight_ih"].float()}), "of the type"),
        (lambda t: t["lstm.0.weight_ih" + SCALE].fill_(float("inf")), "not finite"),
        (lambda t: t["lstm.1.weight_hh"].clamp_(-90, 90), "not rounded to int8"),
    ],
)
def test_damaged_numbers_and_scales(tmp_path, change, message):
    save_bilm(rounded(), tmp_path)
    tensors = load_file(tmp_path / WEIGHTS)
    change(tensors)
    save_file(tensors, tmp_path / WEIGHTS)
    with pytest.raises(ValueError, match=message):
        load_bilm(tmp_path)


def test_changed_weights_are_not_saved_as_rounded(tmp_path):
    bilm = rounded()
    with torch.no_grad():
        bilm.lstm[0].weight_ih[0, 0, 0] += 0.001
    with pytest.raises(ValueError, match="not rounded to int8"):
        save_bilm(bilm, tmp_path)
    assert not (tmp_path / WEIGHTS).exists()
