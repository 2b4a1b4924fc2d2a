"""Batches of sentences with what a language model is to predict in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from ..bilm.characters import CharacterIds
from ..bilm.sentence_batches import IndexedSentences, id_tensor
from .vocabulary import Vocabulary


@dataclass
class SentenceBatch:
    """Sentences that lie one after another, boundaries included; N tokens.

    Attributes:
        ids: ``(n_types, n_positions)`` of the distinct words, for the token encoder.
        tokens: ``(N,)`` each token's row in ``ids``.
        targets: ``(N,)`` each token's index in the vocabulary.
        lengths: tokens of each sentence, boundaries included.
        n_words: words without the boundaries.
        n_predicted: predictions of each direction.
        teacher_targets: a teacher's vectors ``(n, D)`` of some tokens, and their indices ``(n,)``.
        total_words, total_predictions: of the whole batch that this is a share of.
    """

    ids: torch.Tensor
    tokens: torch.Tensor
    targets: torch.Tensor
    lengths: list[int]
    total_words: int
    total_predictions: int
    teacher_targets: tuple[torch.Tensor, torch.Tensor] | None = None

    @property
    def n_words(self) -> int:
        return len(self.tokens) - 2 * len(self.lengths)

    @property
    def n_predicted(self) -> int:
        return len(self.tokens) - len(self.lengths)

    def to(self, device: torch.device) -> SentenceBatch:
        move = partial(torch.Tensor.to, device=device, non_blocking=True)
        moved: dict[str, Any] = {n: move(getattr(self, n)) for n in ("ids", "tokens", "targets")}
        if self.teacher_targets is not None:
            moved["teacher_targets"] = tuple(map(move, self.teacher_targets))
        return replace(self, **moved)


class EncodedSentences(IndexedSentences):
    """Some sentences in memory as ids and targets, from which batches are made.

    Args:
        sentences: lists of words; empty ones are left out.
        vocab: the words that are predicted.
        max_words: longer sentences are split into pieces of at most this many words; None: never.
        to_ids: of the biLM's token encoder.
    """

    def __init__(
        self,
        sentences: Iterable[Sequence[str]],
        vocab: Vocabulary,
        max_words: int | None,
        to_ids: CharacterIds,
    ):
        super().__init__((to_ids.read(words) for words in sentences if len(words)), max_words)
        targets = [vocab[word] for word in self.types]
        self.targets = np.array(targets, dtype=np.int64)  # by type
        self.ids, self.sizes = to_ids(self.types)

    def batch(self, sentences: np.ndarray, share: tuple[int, int] = (0, 1)) -> SentenceBatch:
        """The batch of the given sentences' indices.

        Args:
            sentences: ``(B,)``.
            share: which of how many shares is wanted. Sentences that follow each other, of similar
                length, go to different shares; where there are more shares than sentences, some
                have none.
        """
        rank, n_shares = share
        n_tokens = int(self.lengths[sentences].sum())
        tokens, lengths = self.select(sentences[rank::n_shares])
        types, tokens = np.unique(tokens, return_inverse=True)
        return SentenceBatch(
            id_tensor(self.ids[types], self.sizes[types]),
            torch.from_numpy(tokens.astype(np.int64)),
            torch.from_numpy(self.targets[types][tokens]),
            lengths,
            total_words=n_tokens - 2 * len(sentences),
            total_predictions=n_tokens - len(sentences),
        )
