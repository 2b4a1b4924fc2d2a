"""Sentences as arrays of ids, cut into batches of similar length."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..bilm.characters import BOS, EOS
from ..bilm.model import BiLM
from .vocabulary import Vocabulary

# Words to what a token encoder takes: ids (n_words, most positions), and how many of these each
# word needs (n_words,). See `CharacterIds` and `RowIds`.
ToIds = Callable[[Sequence[str]], tuple[np.ndarray, np.ndarray]]


@dataclass
class Batch:
    """Sentences that lie one after another, boundaries included; N tokens.

    Attributes:
        ids: ``(n_types, n_positions)`` of the distinct words, for the token encoder.
        tokens: ``(N,)`` each token's row in ``ids``.
        targets: ``(N,)`` each token's place in the vocabulary.
        lengths: tokens of each sentence, boundaries included.
        n_words: words without the boundaries.
        n_predicted: predictions of each direction.
        of_whole: the last two of the whole batch that this is a share of.
    """

    ids: torch.Tensor
    tokens: torch.Tensor
    targets: torch.Tensor
    lengths: list[int]
    of_whole: tuple[int, int]

    @property
    def n_words(self) -> int:
        return len(self.tokens) - 2 * len(self.lengths)

    @property
    def n_predicted(self) -> int:
        return len(self.tokens) - len(self.lengths)

    def to(self, device: torch.device) -> Batch:
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> Batch:
        """In memory from which a GPU takes it while the CPU goes on."""
        return self._each(torch.Tensor.pin_memory)

    def _each(self, moved: Callable[[torch.Tensor], torch.Tensor]) -> Batch:
        tensors = (moved(self.ids), moved(self.tokens), moved(self.targets))
        return Batch(*tensors, self.lengths, self.of_whole)


class EncodedSentences:
    """Some sentences in memory, as numbers: what batches are cut from.

    Args:
        sentences: lists of words.
        vocab: the words that are predicted.
        max_words: longer sentences are cut into pieces of at most this many words.
        to_ids: of the biLM's token encoder.
    """

    def __init__(
        self,
        sentences: Iterable[Sequence[str]],
        vocab: Vocabulary,
        max_words: int,
        to_ids: ToIds,
    ):
        types = {BOS: 0, EOS: 1}
        tokens = array("i")  # a tenth of a list's memory
        lengths = array("q")
        for words in sentences:
            ids = [types.setdefault(word, len(types)) for word in words]
            for start in range(0, len(ids), max_words):
                piece = ids[start : start + max_words]
                tokens.append(0)
                tokens.extend(piece)
                tokens.append(1)
                lengths.append(len(piece) + 2)
        self.tokens = np.array(tokens, dtype=np.int32)
        self.lengths = np.array(lengths, dtype=np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.targets = np.array([vocab[word] for word in types], dtype=np.int64)  # by type
        self.ids, self.sizes = to_ids(list(types))

    @classmethod
    def of_whole(
        cls, sentences: Iterable[Sequence[str]], vocab: Vocabulary, model: BiLM
    ) -> EncodedSentences:
        """Sentences of any length, uncut, for a biLM."""
        return cls(sentences, vocab, 2**31, model.token_encoder.to_ids)

    def batch(self, sentences: np.ndarray, share: tuple[int, int] = (0, 1)) -> Batch:
        """The batch of the given sentences' indices.

        Args:
            sentences: ``(B,)``.
            share: which of how many shares is wanted. Sentences that follow each other, of similar
                length, go to different shares; where there are more shares than sentences, some
                hold none.
        """
        number, n_shares = share
        n_tokens = int(self.lengths[sentences].sum())
        of_whole = n_tokens - 2 * len(sentences), n_tokens - len(sentences)
        sentences = sentences[number::n_shares]
        lengths = self.lengths[sentences]
        offsets = np.repeat(self.starts[sentences] - (np.cumsum(lengths) - lengths), lengths)
        types, tokens = np.unique(
            self.tokens[offsets + np.arange(len(offsets))], return_inverse=True
        )
        n_positions = int(self.sizes[types].max(initial=0))
        return Batch(
            torch.from_numpy(self.ids[types, :n_positions].astype(np.int64)),
            torch.from_numpy(tokens.astype(np.int64)),
            torch.from_numpy(self.targets[types][tokens]),
            lengths.tolist(),
            of_whole,
        )

    def plan(self, batch_words: int, rng: np.random.Generator | None) -> list[np.ndarray]:
        """Cut the block into batches of sentences of similar length, about `batch_words` each.

        Args:
            batch_words: tokens of a batch, boundaries included; at least one sentence is in it.
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

    def streams(self, n_streams: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Deal the sentences out to streams, in random order: each batch has one of each stream
        (the last may have fewer)."""
        order = rng.permutation(len(self.lengths))
        return [order[i : i + n_streams] for i in range(0, len(order), n_streams)]
