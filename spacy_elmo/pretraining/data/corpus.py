"""A text to training batches, in an order that follows from the seed alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...lm.batches import Batch, EncodedSentences, ToIds
from ...lm.vocabulary import Vocabulary
from .reader import CorpusReader


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
        max_words, to_ids: see `EncodedSentences`.
        seed: of every order.
        n_streams: deal the sentences out to so many streams instead of bucketing them.
    """

    def __init__(
        self,
        source: CorpusReader,
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
        self, place: CorpusPosition, share: tuple[int, int] = (0, 1)
    ) -> Iterator[tuple[Batch, CorpusPosition]]:
        """Batches from a place on, each with the place after it; never ends.

        Args:
            place: the first of them.
            share: of each batch, see `EncodedSentences.batch`; only the share is made into tensors.

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
                after = CorpusPosition(place.epoch, reading.file, reading.sentence)
                if not reading.has_more():
                    after = CorpusPosition(place.epoch + 1)
                rng = np.random.default_rng([self.seed, *here])
                if self.n_streams is None:
                    plan = block.plan(self.batch_words, rng)
                else:
                    plan = block.streams(self.n_streams, rng)
                for b in range(place.batch, len(plan)):
                    is_last = b + 1 == len(plan)
                    yield (
                        block.batch(plan[b], share),
                        after if is_last else CorpusPosition(*here, b + 1),
                    )
                place = after

    def block(self, sentences: Iterable[Sequence[str]]) -> EncodedSentences:
        return EncodedSentences(sentences, self.vocab, self.max_words, self.to_ids)


class Pass:
    """One pass over the files of a text, from a place on; it knows where the next sentence is.

    Args:
        source: the text.
        files: its files, in the order of this pass.
        file, sentence: place of the first sentence: a file's number, and its number there.
    """

    def __init__(self, source: CorpusReader, files: Sequence[Path], file: int, sentence: int):
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
class CorpusPosition:
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
