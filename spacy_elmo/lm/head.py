"""The head on disk: ``head.safetensors`` and ``vocab.txt`` beside a biLM's weights."""

from __future__ import annotations

from pathlib import Path

import torch

from ..weights.find import Setting, find_weights
from ..weights.layout import HEAD, VOCAB
from ..weights.native import check_tensors, compact, write_tensors
from .softmax import SoftmaxHead
from .vocabulary import SPECIALS, Vocabulary


def save_head(head: SoftmaxHead, vocab: Vocabulary, path: Path, half: bool = False) -> None:
    """Write a head and its vocabulary into a directory that exists.

    Args:
        head: the head.
        vocab: its words.
        path: where to.
        half: round the weights to half precision. Without it they are written in half precision
            only where that is exact.
    """
    vocab.write(path / VOCAB)
    tensors = {name: tensor.detach().cpu() for name, tensor in head.state_dict().items()}
    write_tensors(compact(tensors, half), path / HEAD)


def load_head(setting: Setting) -> tuple[SoftmaxHead, Vocabulary]:
    """Load the language model's head of a biLM, in float32, in evaluation mode.

    Args:
        setting: see `find_weights`. The head may be stored in any floating type; that of a
            published model may have its special words anywhere.

    Returns:
        The head, ``(V, P)`` weights and ``(V,)`` biases, and its V words.

    Raises:
        ValueError: there is no head, it is damaged, or it does not fit the biLM or the words.
    """
    source = find_weights(setting)
    words, tensors = source.head()
    with torch.device("meta"):
        head = SoftmaxHead(len(words), source.config().projection_dim)
    name = f"The head of {source.where} ({len(words):,} words in '{source.vocab}')"
    check_tensors(dict(head.state_dict()), tensors, name)
    order = special_first(words)
    if order is not None:
        words, tensors = [words[i] for i in order], {n: t[order] for n, t in tensors.items()}
    vocab = Vocabulary(words, f"The vocabulary of {source.where}")
    head.load_state_dict({n: t.to(torch.float32) for n, t in tensors.items()}, assign=True)
    return head.eval(), vocab


def special_first(words: list[str]) -> list[int] | None:
    """The order of words that begins with the special ones; None if they are in it, or missing."""
    if tuple(words[: len(SPECIALS)]) == SPECIALS or not set(SPECIALS) <= set(words):
        return None
    special = [words.index(word) for word in SPECIALS]
    return special + [i for i in range(len(words)) if i not in special]
