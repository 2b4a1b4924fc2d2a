"""A text to training batches, in an order that follows from the seed alone."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ..bilm.characters import BOS, EOS
from ..bilm.model import BiLM
from .source import Source
from .vocab import Vocabulary

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


class Block:
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
    def of_whole(cls, sentences: Iterable[Sequence[str]], vocab: Vocabulary, model: BiLM) -> Block:
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
    """Batches of an endless run over a text of any size, a bounded part of it in memory.

    Each epoch takes the files in a new random order and reads them through a buffer: as many words
    as it holds are shuffled together, their sentences bucketed by length and cut into batches,
    which are shuffled again. All of it follows from the seed and the place, so any place can be
    returned to.

    Args:
        source: the text.
        vocab: the words that are predicted.
        buffer_words: words in memory together; the sentence that reaches this is still taken.
        batch_words: tokens of a batch, boundaries included.
        max_words, to_ids: see `Block`.
        seed: of every order.
        n_streams: deal the sentences out to so many streams instead of bucketing them.
    """

    def __init__(
        self,
        source: Source,
        vocab: Vocabulary,
        *,
        buffer_words: int,
        batch_words: int,
        max_words: int,
        to_ids: ToIds,
        seed: int,
        n_streams: int | None = None,
    ):
        self.source = source
        self.files = source.files()
        self.vocab = vocab
        self.buffer_words = buffer_words
        self.batch_words = batch_words
        self.max_words = max_words
        self.to_ids = to_ids
        self.seed = seed
        self.n_streams = n_streams

    def batches(
        self, place: Place, share: tuple[int, int] = (0, 1)
    ) -> Iterator[tuple[Batch, Place]]:
        """Batches from a place on, each with the place after it; never ends.

        Args:
            place: the first of them.
            share: of each batch, see `Block.batch`; only the share is made into tensors.

        Raises:
            ValueError: there is nothing in the text any more.
        """
        while True:
            order = np.random.default_rng([self.seed, place.epoch]).permutation(len(self.files))
            files = [self.files[i] for i in order]
            reading = Pass(self.source, files, place.file, place.sentence)
            if not reading.has_more():
                raise ValueError(f"The training text is empty now: {self.files[0]} and others.")
            while reading.has_more():
                here = (place.epoch, reading.file, reading.sentence)
                block = self.block(reading.take(self.buffer_words))
                after = Place(place.epoch, reading.file, reading.sentence)
                if not reading.has_more():
                    after = Place(place.epoch + 1)
                rng = np.random.default_rng([self.seed, *here])
                if self.n_streams is None:
                    plan = block.plan(self.batch_words, rng)
                else:
                    plan = block.streams(self.n_streams, rng)
                for b in range(place.batch, len(plan)):
                    is_last = b + 1 == len(plan)
                    yield block.batch(plan[b], share), after if is_last else Place(*here, b + 1)
                place = after

    def block(self, sentences: Iterable[Sequence[str]]) -> Block:
        return Block(sentences, self.vocab, self.max_words, self.to_ids)


class Pass:
    """One pass over the files of a text, from a place on; it knows where the next sentence is.

    Args:
        source: the text.
        files: its files, in the order of this pass.
        file, sentence: place of the first sentence: a file's number, and its number there.
    """

    def __init__(self, source: Source, files: Sequence[Path], file: int, sentence: int):
        self._next: Sequence[str] | None
        self._sentences = (
            (f, s, words)
            for f in range(file, len(files))
            for s, words in enumerate(source.read(files[f]))
            if f > file or s >= sentence
        )
        self._advance()

    def _advance(self) -> None:
        self.file, self.sentence, self._next = next(self._sentences, (0, 0, None))

    def has_more(self) -> bool:
        """Whether there is a next sentence."""
        return self._next is not None

    def take(self, n_words: int) -> Iterator[Sequence[str]]:
        """Sentences until there are so many words, or no more."""
        taken = 0
        while self._next is not None and taken < n_words:
            words = self._next
            taken += len(words)
            self._advance()
            yield words


@dataclass(frozen=True)
class Place:
    """A place in a `Corpus`: the next batch to be read.

    Attributes:
        epoch: passes over the text before this one.
        file, sentence: where the buffer's first sentence is: a file's number in the order of the
            epoch, and the sentence's number there.
        batch: number of the batch of this buffer.
    """

    epoch: int = 0
    file: int = 0
    sentence: int = 0
    batch: int = 0
