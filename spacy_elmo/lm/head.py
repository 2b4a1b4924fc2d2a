"""The head's files, ``head.safetensors`` and ``vocab.txt``, beside a biLM's weights."""

from __future__ import annotations

from pathlib import Path

import torch

from ..weights.find import WeightsLike, find_weights
from ..weights.layout import HEAD, VOCAB
from ..weights.tensors import compact, write_tensors
from .softmax import SoftmaxHead
from .vocabulary import Vocabulary


def save_head(head: SoftmaxHead, vocab: Vocabulary, path: Path, half: bool = False) -> None:
    """Write a head and its vocabulary into a directory that exists.

    Args:
        head: the head.
        vocab: its words.
        path: the directory.
        half: round the weights to half precision. Otherwise they are written in half precision
            only if that is exact.
    """
    vocab.write(path / VOCAB)
    write_tensors(compact(head.state_dict(), half), path / HEAD)


def load_head(weights: WeightsLike) -> tuple[SoftmaxHead, Vocabulary]:
    """Load the head of a biLM, in float32, in evaluation mode.

    Args:
        weights: see `find_weights`. The head may be stored in any floating type.

    Returns:
        The head, with weights ``(V, P)`` and biases ``(V,)``, and its V words.

    Raises:
        ValueError: there is no head, it is damaged, or it does not fit the biLM or the words.
    """
    source = find_weights(weights)
    words, tensors = source.head()
    vocab = Vocabulary(words, f"The vocabulary of {source.where}")
    with torch.device("meta"):
        head = SoftmaxHead(*tensors["weight"].shape)
    head.load_state_dict(tensors, assign=True)
    return head.eval(), vocab
