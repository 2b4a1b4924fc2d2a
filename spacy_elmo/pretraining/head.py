"""The softmax head on disk: ``head.safetensors`` and ``vocab.txt`` beside a biLM's weights."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from ..bilm.weights import (
    HEAD,
    VOCAB,
    check_tensors,
    find_weights,
    read_config,
    write_tensors,
)
from .softmax import SoftmaxHead
from .vocab import Vocabulary


def save_head(head: SoftmaxHead, vocab: Vocabulary, path: Path, half: bool = False) -> None:
    """Write a head and its vocabulary into a directory that exists.

    Args:
        head: the head.
        vocab: its words.
        path: where to.
        half: round the weights to half precision.
    """
    vocab.write(path / VOCAB)
    tensors = {name: tensor.detach().cpu() for name, tensor in head.state_dict().items()}
    if half:
        tensors = {name: tensor.half() for name, tensor in tensors.items()}
    write_tensors(tensors, path / HEAD)


def load_head(name_or_path: str | Path) -> tuple[SoftmaxHead, Vocabulary]:
    """Load the language model's head of a biLM, in float32, in evaluation mode.

    Args:
        name_or_path: an embedded name, or a directory in our own format. The head may be stored
            in any floating type.

    Returns:
        The head, ``(V, P)`` weights and ``(V,)`` biases, and its V words.

    Raises:
        ValueError: there is no head, it is damaged, or it does not fit the biLM or the words.
    """
    path = find_weights(name_or_path)
    missing = [name for name in (HEAD, VOCAB) if not (path / name).is_file()]
    if missing:
        raise ValueError(
            f"The biLM in '{path}' comes without a language model's head, so it cannot predict "
            f"words: there is no {' and no '.join(missing)}. Models from "
            f"`python -m spacy elmo pretrain` have them."
        )
    vocab = Vocabulary.read(path / VOCAB)
    try:
        tensors = load_file(path / HEAD)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"Cannot read {path / HEAD}: {error}") from error
    with torch.device("meta"):
        head = SoftmaxHead(len(vocab), read_config(path).projection_dim)
    source = f"{path / HEAD} ({len(vocab):,} words in {VOCAB})"
    check_tensors(dict(head.state_dict()), tensors, source)
    weights = {name: tensor.to(torch.float32, copy=True) for name, tensor in tensors.items()}
    head.load_state_dict(weights, assign=True)
    return head.eval(), vocab
