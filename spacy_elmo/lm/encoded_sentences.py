"""Batches of sentences, with the words that a language model predicts in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..bilm.characters import CharacterIds
from ..bilm.sentence_batches import IndexedSentences, id_tensor
from .vocabulary import Vocabulary


@dataclass
class SentenceBatch:
    """The tokens of some sentences, one sentence after another, boundaries included.

    Attributes:
        ids: ``(n_types, n_positions)``, the character ids of the distinct words.
        tokens: ``(N,)``, each token's row in ``ids``.
        targets: ``(N,)``, each token's index in the vocabulary.
        lengths: the number of tokens in each sentence.
        n_words: the number of words, without boundaries.
        n_predicted: the number of predictions that each direction makes.
    """

    ids: torch.Tensor
    tokens: torch.Tensor
    targets: torch.Tensor
    lengths: list[int]

    @property
    def n_words(self) -> int:
        return len(self.tokens) - 2 * len(self.lengths)

    @property
    def n_predicted(self) -> int:
        return len(self.tokens) - len(self.lengths)

    def to(self, device: torch.device) -> SentenceBatch:
        tensors = (self.ids, self.tokens, self.targets)
        ids, tokens, targets = (tensor.to(device, non_blocking=True) for tensor in tensors)
        return replace(self, ids=ids, tokens=tokens, targets=targets)


class EncodedSentences(IndexedSentences):
    """Sentences in memory, from which batches are made.

    Args:
        sentences: lists of words. Empty sentences are left out.
        vocab: the vocabulary of the head.
        max_words: longer sentences are split into pieces of this many words; None for no limit.
        to_ids: the biLM's `CharacterIds`.
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
        self.targets = np.array(targets, dtype=np.int64)  # of each distinct word
        self.ids, self.sizes = to_ids(self.types)

    def batch(self, sentences: np.ndarray) -> SentenceBatch:
        """The batch of the sentences with these indices ``(B,)``."""
        tokens, lengths = self.select(sentences)
        types, tokens = np.unique(tokens, return_inverse=True)
        ids = id_tensor(self.ids[types], self.sizes[types])
        targets = torch.from_numpy(self.targets[types][tokens])
        return SentenceBatch(ids, torch.from_numpy(tokens.astype(np.int64)), targets, lengths)
