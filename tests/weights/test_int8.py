"""Weights of gates in int8, in our format and in saved components."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from spacy_elmo.bilm.fingerprint import fingerprint
from spacy_elmo.bilm.int8 import SCALE, is_gate, round_gates
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.util.files import read_json
from spacy_elmo.weights.find import load_bilm
from spacy_elmo.weights.layout import CONFIG as CONFIG_FILE
from spacy_elmo.weights.layout import WEIGHTS, Card
from spacy_elmo.weights.native import save_bilm
from spacy_elmo.weights.saved import from_bytes, to_bytes

from ..pipeline.helpers import CONFIG


def rounded() -> BiLM:
    torch.manual_seed(0)
    return round_gates(BiLM(replace(CONFIG, initial_state="warm")).eval())


@pytest.mark.parametrize("half", [False, True])
def test_save_and_load(tmp_path: Path, half: bool) -> None:
    bilm = rounded()
    bilm.initial_state()
    save_bilm(bilm, tmp_path, half=half)
    stored, loaded = load_file(tmp_path / WEIGHTS), load_bilm(str(tmp_path))
    assert read_json(tmp_path / CONFIG_FILE)["int8"] and loaded.config == bilm.config
    assert {t.dtype for name, t in stored.items() if is_gate(name)} == {torch.int8}
    for name, tensor in bilm.state_dict().items():
        found = loaded.state_dict()[name]
        assert found.dtype == torch.float32
        expected = tensor if is_gate(name) or not half else tensor.half().float()
        assert torch.equal(found, expected), name


def test_bytes_of_a_component() -> None:
    bilm = rounded()
    loaded, _, _ = from_bytes(to_bytes(bilm, Card(), None))
    assert loaded.config.int8 and fingerprint(loaded) == fingerprint(bilm)
    with torch.no_grad():
        ours, theirs = (model.read([["a", "bank"]])[0][0] for model in (loaded, bilm))
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda t: t.update({"lstm.0.weight_ih": t["lstm.0.weight_ih"].float()}), "of the type"),
        (lambda t: t["lstm.0.weight_ih" + SCALE].fill_(float("inf")), "not finite"),
        (lambda t: t["lstm.1.weight_hh"].clamp_(-90, 90), "not rounded to int8"),
    ],
)
def test_damaged_numbers_and_scales(tmp_path: Path, change: Any, message: str) -> None:
    save_bilm(rounded(), tmp_path)
    tensors = load_file(tmp_path / WEIGHTS)
    change(tensors)
    save_file(tensors, tmp_path / WEIGHTS)
    with pytest.raises(ValueError, match=message):
        load_bilm(str(tmp_path))


def test_changed_weights_are_not_saved_as_rounded(tmp_path: Path) -> None:
    bilm = rounded()
    with torch.no_grad():
        bilm.lstm[0].weight_ih[0, 0, 0] += 0.001
    with pytest.raises(ValueError, match="not rounded to int8"):
        save_bilm(bilm, tmp_path)
    assert not (tmp_path / WEIGHTS).exists()
