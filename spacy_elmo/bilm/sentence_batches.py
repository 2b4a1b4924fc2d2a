"""Sentences as indices of their distinct words, and batches of sentences of similar length."""

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
            batch_words: tokens of a batch, boundaries included, about: less than this and the
                longest sentence together. There is one sentence in it at least.
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


def id_tensor(ids: np.ndarray, sizes: np.ndarray) -> torch.Tensor:
    """Ids of words for a token encoder, int64, trimmed to the positions that they need.

    Args:
        ids: ``(n_words, n_positions)``.
        sizes: ``(n_words,)`` the positions that each word needs.
    """
    return torch.from_numpy(ids[:, : int(sizes.max(initial=0))].astype(np.int64))
