"""Sentence shards to training batches, in an order that follows from the seed alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ..bilm.characters import BOS, EOS, PADDING, encode_word
from ..bilm.config import BiLMConfig
from .shards import read_sentences
from .vocab import Vocabulary


@dataclass
class Batch:
    """Sentences that lie one after another, boundaries included; N tokens.

    Attributes:
        char_ids: ``(n_types, n_positions)`` byte ids of the distinct words.
        tokens: ``(N,)`` each token's row in ``char_ids``.
        targets: ``(N,)`` each token's place in the vocabulary.
        lengths: tokens of each sentence, boundaries included.
        n_words: words without the boundaries.
        n_predicted: predictions of each direction.
        of_whole: the last two of the whole batch that this is a share of.
    """

    char_ids: torch.Tensor
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
        tensors = (moved(self.char_ids), moved(self.tokens), moved(self.targets))
        return Batch(*tensors, self.lengths, self.of_whole)


class Block:
    """Some sentences in memory, as numbers: what batches are cut from.

    Args:
        sentences: lists of words.
        vocab: the words that are predicted.
        max_words: longer sentences are cut into pieces of at most this many words.
        max_width: the widest filter of the char-CNN.
        max_characters: positions of a word at the most.
    """

    def __init__(
        self,
        sentences: Iterable[Sequence[str]],
        vocab: Vocabulary,
        max_words: int,
        max_width: int,
        max_characters: int,
    ):
        types = {BOS: 0, EOS: 1}
        tokens: list[int] = []
        lengths: list[int] = []
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
        encoded = [encode_word(word, max_characters) for word in types]
        self.sizes = np.array([len(ids) for ids in encoded])
        self.char_ids = np.full((len(types), max_characters), PADDING, dtype=np.int16)
        for row, ids in zip(self.char_ids, encoded, strict=True):
            row[: len(ids)] = ids
        self.max_width = max_width

    @classmethod
    def of_whole(
        cls, sentences: Iterable[Sequence[str]], vocab: Vocabulary, config: BiLMConfig
    ) -> Block:
        """Sentences of any length, uncut, for a biLM of this config."""
        max_width = max(width for width, _ in config.filters)
        return cls(sentences, vocab, 2**31, max_width, config.max_characters_per_token)

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
        longest = int(self.sizes[types].max(initial=0))
        n_positions = min(self.char_ids.shape[1], longest + self.max_width)
        return Batch(
            torch.from_numpy(self.char_ids[types, :n_positions].astype(np.int64)),
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
        order = np.arange(len(self.lengths))
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


class Corpus:
    """Batches of an endless run over shards.

    Each epoch takes the shards in a new random order, some at a time; the sentences of these are
    shuffled together, bucketed by length and cut into batches, which are shuffled again. All of
    it follows from the seed and the epoch, so any place in it can be returned to.

    Args:
        shards: the files.
        vocab: the words that are predicted.
        shards_at_once: files in memory together.
        batch_words: tokens of a batch, boundaries included.
        seed: of every order.
        n_streams: deal the sentences out to so many streams instead of bucketing them.
    """

    def __init__(
        self,
        shards: Sequence[Path],
        vocab: Vocabulary,
        *,
        shards_at_once: int,
        batch_words: int,
        max_words: int,
        max_width: int,
        max_characters: int,
        seed: int,
        n_streams: int | None = None,
    ):
        self.shards = list(shards)
        self.vocab = vocab
        self.shards_at_once = shards_at_once
        self.batch_words = batch_words
        self.max_words = max_words
        self.max_width = max_width
        self.max_characters = max_characters
        self.seed = seed
        self.n_streams = n_streams

    def block(self, shards: Sequence[Path]) -> Block:
        sentences = (words for shard in shards for words in read_sentences(shard))
        return Block(sentences, self.vocab, self.max_words, self.max_width, self.max_characters)

    def batches(
        self, place: Place, share: tuple[int, int] = (0, 1)
    ) -> Iterator[tuple[Batch, Place]]:
        """Batches from a place on, each with the place after it; never ends.

        Args:
            place: the first of them.
            share: of each batch, see `Block.batch`; only the share is made into tensors.

        Raises:
            ValueError: there is nothing in the shards any more.
        """
        epoch, group, start = place.epoch, place.group, place.batch
        while True:
            n_batches = 0
            order = np.random.default_rng([self.seed, epoch]).permutation(len(self.shards))
            groups = range(0, len(order), self.shards_at_once)
            for g in range(group, len(groups)):
                files = order[groups[g] : groups[g] + self.shards_at_once]
                block = self.block([self.shards[i] for i in files])
                rng = np.random.default_rng([self.seed, epoch, g])
                if self.n_streams is None:
                    plan = block.plan(self.batch_words, rng)
                else:
                    plan = block.streams(self.n_streams, rng)
                for b in range(start, len(plan)):
                    last = b + 1 == len(plan)
                    after = Place(epoch, g, b + 1)
                    if last:
                        after = Place(epoch + (g + 1) // len(groups), (g + 1) % len(groups), 0)
                    yield block.batch(plan[b], share), after
                start = 0
                n_batches += len(plan)
            if group == 0 and n_batches == 0:
                raise ValueError(f"The training shards are empty now: {self.shards[0]} and others.")
            epoch, group = epoch + 1, 0


@dataclass(frozen=True)
class Place:
    """A place in a `Corpus`: the next batch to be read."""

    epoch: int = 0
    group: int = 0
    batch: int = 0
