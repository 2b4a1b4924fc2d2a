"""Sentences as indices of their distinct words, in batches of similar length, packed into steps.

A packed batch is one sequence of shrinking time steps, for both directions at once, as PyTorch's
`PackedSequence` is for one: the sentences are sorted by length, longest first. Step t then holds
the sentences that are longer than t, always the first rows of the step before, and no padding is
ever computed. The backward direction reads each sentence reversed within its own length, so it has
the same steps.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import numpy as np
import torch

from .characters import BOS, EOS


class IndexedSentences:
    """Sentences in memory, each distinct word once; boundaries are added.

    Args:
        sentences: lists of words without boundaries; one may be empty.
        max_words: sentences of more words are split into pieces of at most so many.

    Attributes:
        types: the distinct words, ``<S>`` and ``</S>`` first.
        tokens: ``(N,)`` int32, the index of each token's word in ``types``.
        lengths: ``(n_sentences,)`` int64, tokens of each sentence (or piece).
        starts: ``(n_sentences,)`` int64, the first token of each.
    """

    def __init__(self, sentences: Iterable[Sequence[str]], max_words: int | None = None):
        types = {BOS: 0, EOS: 1}
        tokens = array("i")  # a tenth of a list's memory
        lengths = array("q")
        for words in sentences:
            ids = [types.setdefault(word, len(types)) for word in words]
            step = max_words or len(ids) or 1
            for start in range(0, len(ids) or 1, step):
                piece = ids[start : start + step]
                tokens.append(0)
                tokens.extend(piece)
                tokens.append(1)
                lengths.append(len(piece) + 2)
        self.types = list(types)
        self.tokens = np.array(tokens, dtype=np.int32)
        self.lengths = np.array(lengths, dtype=np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths

    def plan(self, batch_words: int, rng: np.random.Generator | None = None) -> list[np.ndarray]:
        """Batches of sentences of similar length, as indices of the sentences.

        Args:
            batch_words: the approximate number of tokens in a batch, boundaries included: less than
                this plus the longest sentence. A batch has at least one sentence.
            rng: shuffles sentences of the same length and the batches; None keeps the order.
        """
        order: np.ndarray = np.arange(len(self.lengths))
        if rng is not None:
            rng.shuffle(order)
        order = order[np.argsort(self.lengths[order], kind="stable")]
        batch_of = (np.cumsum(self.lengths[order]) - 1) // batch_words
        batches = np.split(order, np.flatnonzero(np.diff(batch_of)) + 1)
        if rng is not None:
            rng.shuffle(batches)
        return [batch for batch in batches if len(batch)]

    def select(self, sentences: np.ndarray) -> tuple[np.ndarray, list[int]]:
        """The tokens ``(M,)`` of some sentences, one after another, and how many each has.

        Args:
            sentences: indices ``(B,)``.
        """
        lengths = self.lengths[sentences]
        offsets = np.repeat(self.starts[sentences] - (np.cumsum(lengths) - lengths), lengths)
        return self.tokens[offsets + np.arange(len(offsets))], lengths.tolist()

    def words(self, sentences: np.ndarray) -> list[list[str]]:
        """The words of some sentences, without boundaries; see `select`."""
        tokens, lengths = self.select(sentences)
        parts = np.split(tokens, np.cumsum(lengths)[:-1]) if lengths else []
        return [[self.types[i] for i in part[1:-1]] for part in parts]


def id_tensor(ids: np.ndarray, sizes: np.ndarray) -> torch.Tensor:
    """Ids of words for a token encoder, int64, trimmed to the positions that they need.

    Args:
        ids: ``(n_words, n_positions)``.
        sizes: ``(n_words,)`` the positions that each word needs.
    """
    return torch.from_numpy(ids[:, : int(sizes.max(initial=0))].astype(np.int64))


def to_device(array: np.ndarray, device: torch.device | str) -> torch.Tensor:
    """An array as a tensor on a device; copied to a GPU without waiting for it."""
    tensor = torch.from_numpy(array)
    if torch.device(device).type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


class Packing:
    """The packed order of a batch of sentences that are concatenated in a flat array.

    Args:
        lengths: tokens of each sentence, at least one; there is at least one sentence.
        device: where the tensors are.

    Attributes:
        sorted_indices: ``(n_sentences,)`` the sentences, longest first (ties keep their order).
        unsorted_indices: the inverse: for each sentence, its row in the first step.
        batch_sizes: sentences in each step, falling.
        steps: ``(first packed index, number of sentences)`` of each step.
        source: ``(2, N)`` for each direction and packed index, the flat index.
        target: ``(2, N)`` the inverse: for each flat index, the packed index.
        previous: ``(N − n_sentences,)`` for each packed index after step 0, the packed index
            of the same sentence one step before.
    """

    def __init__(self, lengths: Sequence[int], device: torch.device | str = "cpu"):
        sizes = np.asarray(lengths, dtype=np.int64)
        order = np.argsort(-sizes, kind="stable")
        starts = np.cumsum(sizes) - sizes
        times: np.ndarray = np.arange(sizes.max())
        # batch_sizes[t] = how many sentences are longer than t
        batch_sizes = len(sizes) - np.searchsorted(np.sort(sizes), times, side="right")
        step_starts = np.cumsum(batch_sizes) - batch_sizes
        t = np.repeat(times, batch_sizes)  # of each packed index
        packed = np.arange(len(t))
        sentence = order[packed - step_starts[t]]
        forward, backward = starts[sentence] + t, starts[sentence] + sizes[sentence] - 1 - t
        source = np.stack([forward, backward])
        previous = packed[len(sizes) :] - np.repeat(batch_sizes[:-1], batch_sizes[1:])

        self.batch_sizes: list[int] = batch_sizes.tolist()
        self.steps = list(zip(step_starts.tolist(), self.batch_sizes, strict=True))
        indices = order, np.argsort(order), source, np.argsort(source, axis=1), previous
        on_device = to_device(np.concatenate([each.ravel() for each in indices]), device)
        self.sorted_indices, self.unsorted_indices, self.source, self.target, self.previous = (
            part.view(each.shape)
            for part, each in zip(on_device.split([i.size for i in indices]), indices, strict=True)
        )

    def unpack(self, x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """Turn a packed layer ``(2, N, P)`` into one in the flat array's order, ``(N, 2P)``."""
        return torch.cat([x[0][self.target[0]], x[1][self.target[1]]], dim=1, out=out)
