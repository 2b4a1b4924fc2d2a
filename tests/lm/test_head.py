from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from spacy_elmo.lm.head import load_head, save_head
from spacy_elmo.weights.native import save_bilm

from ..pretraining.helpers import make_model, make_vocab

VOCAB = make_vocab(["the", "a", "안녕"])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    model, head = make_model(len(VOCAB))
    save_bilm(model, tmp_path)
    save_head(head, VOCAB, tmp_path)
    return tmp_path


@pytest.mark.parametrize("half", [False, True])
def test_a_head_is_loaded_as_it_was_saved(directory: Path, half: bool) -> None:
    """In float32."""
    tensors = load_file(directory / "head.safetensors")
    if half:
        tensors = {name: tensor.half() for name, tensor in tensors.items()}
        save_file(tensors, directory / "head.safetensors")
    head, vocab = load_head(directory)
    assert vocab.words == VOCAB.words
    for name, parameter in head.named_parameters():
        assert torch.equal(parameter, tensors[name].float())
        assert parameter.dtype == torch.float32
    assert not head.training


@pytest.mark.parametrize("name", ["head.safetensors", "vocab.txt"])
def test_a_biLM_without_a_head(directory: Path, name: str) -> None:
    (directory / name).unlink()
    with pytest.raises(ValueError, match=r"without a language model's head"):
        load_head(directory)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"weight": torch.zeros(5, 8), "bias": torch.zeros(5)}, r"shape \(5, 8\)"),  # other words
        ({"weight": torch.zeros(6, 5), "bias": torch.zeros(6)}, r"shape \(6, 5\)"),  # another biLM
        ({"weight": torch.zeros(6, 8)}, r"missing tensors \['bias'\]"),
        ({"weight": torch.zeros(6, 8).char(), "bias": torch.zeros(6)}, "'weight' .* of the type"),
        (None, r"Cannot read .*head\.safetensors"),
    ],
)
def test_another_head(
    directory: Path, tensors: dict[str, torch.Tensor] | None, message: str
) -> None:
    if tensors is None:
        (directory / "head.safetensors").write_bytes(b"damaged")
    else:
        save_file(tensors, directory / "head.safetensors")
    with pytest.raises(ValueError, match=message):
        load_head(directory)
