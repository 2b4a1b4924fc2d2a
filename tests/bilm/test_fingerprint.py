"""Whether two biLMs have the same weights, and copies that share them."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.fingerprint import fingerprint
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.weights.find import load_bilm
from spacy_elmo.weights.layout import Card
from spacy_elmo.weights.native import save_bilm
from spacy_elmo.weights.saved import from_bytes, to_bytes


def make_bilm() -> BiLM:
    """Weights that half precision holds exactly."""
    torch.manual_seed(0)
    model = BiLM(BiLMConfig(((1, 4), (2, 4)), 4, 6, n_layers=2, char_dim=3)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.uniform_(-0.5, 0.5).half())
    return model


def test_the_same_weights(tmp_path: Path) -> None:
    """However they are stored, and however they are computed with."""
    model = make_bilm()
    expected = fingerprint(model)
    save_bilm(model, tmp_path)
    assert len(expected) == 32
    copies = [
        load_bilm(str(tmp_path)),
        from_bytes(to_bytes(model, Card(), None))[0],
        deepcopy(model),
        model.share_weights(),
        deepcopy(model).half(),
        deepcopy(model).double(),
    ]
    assert {fingerprint(copied) for copied in copies} == {expected}
    model.initial_state("warm")  # computed from the weights at its first use
    model.clear_caches()
    assert model.state_dict()["warm_h"].any() and fingerprint(model) == expected


def test_every_tensor_counts() -> None:
    model = make_bilm()
    found = {fingerprint(model)}
    tensors = model.state_dict()
    with torch.no_grad():
        for tensor in (tensor for tensor in tensors.values() if tensor.numel()):
            tensor.view(-1)[-1] += 1
            model.clear_caches()  # for buffers, which nothing changes
            found.add(fingerprint(model))
    assert len(found) == 1 + sum(tensor.numel() > 0 for tensor in tensors.values())


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    model = make_bilm()
    assert fingerprint(deepcopy(model).cuda()) == fingerprint(model)
