"""A text to training batches, in an order that follows from the seed alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from ..bilm.characters import CharacterIds
from ..lm.encoded_sentences import EncodedSentences, SentenceBatch
from ..lm.vocabulary import Vocabulary
from ..text.corpus_reader import CorpusReader
from ..util.settings import Settings, at_least
from .config import CorpusSettings, TrainingSettings
from .teacher import Teacher, add_targets

N_AHEAD = 4  # batches that a thread makes while a GPU works

T = TypeVar("T")


@dataclass(frozen=True)
class CorpusPosition(Settings):
    """A position in a `TrainingCorpus`: the next batch to be read.

    Attributes:
        epoch: complete passes over the text.
        file, sentence: the buffer's first sentence: a file's index in the order of the epoch, and
            the sentence's index there.
        batch: index of the batch in this buffer.
    """

    title = "Position in the corpus:"
    epoch: int = at_least(0, 0)
    file: int = at_least(0, 0)
    sentence: int = at_least(0, 0)
    batch: int = at_least(0, 0)


# The wanted shares of each batch, and the position after it: a resumed run loses none of those that
# were read ahead.
Batches = Generator[tuple[list[SentenceBatch], CorpusPosition], None, None]


@dataclass(frozen=True)
class TrainingCorpus:
    """An endless stream of batches from a text of any size, a bounded part of it in memory.

    Each epoch takes the files in a new random order and reads them through a buffer: its words
    are shuffled together, their sentences sorted by length and grouped to batches, which are
    shuffled again. All of it follows from the seed and the position, so a run can be resumed at
    any position.

    Attributes:
        reader: of the text.
        vocab: the words that are predicted.
        to_ids: of the biLM's token encoder, see `EncodedSentences`.
        settings: [corpus]; the sentence that fills a buffer is still taken.
        training: [training], for the seed and the size of batches.
        teacher: gives vectors of the words, or None.
    """

    reader: CorpusReader
    vocab: Vocabulary
    to_ids: CharacterIds
    settings: CorpusSettings
    training: TrainingSettings
    teacher: Teacher | None = None

    def batches(
        self, position: CorpusPosition, shares: Sequence[tuple[int, int]] = ((0, 1),)
    ) -> Batches:
        """Batches from a position on, each with the position after it; never ends.

        Args:
            position: of the first batch.
            shares: of each batch, see `EncodedSentences.batch`; only these are made into tensors.

        Raises:
            ValueError: the text has become empty.
        """
        all_files, seed = self.reader.files(), self.training.seed
        while True:
            order = np.random.default_rng([seed, position.epoch]).permutation(len(all_files))
            files = [all_files[i] for i in order]
            epoch = Pass(self.reader, files, position.file, position.sentence)
            if not epoch.has_more():
                raise ValueError(f"The training text is empty now: {all_files[0]} and others.")
            while epoch.has_more():
                start = (position.epoch, epoch.file, epoch.sentence)
                sentences = epoch.take(self.settings.buffer_words)
                buffer = EncodedSentences(
                    sentences, self.vocab, self.settings.max_words, self.to_ids
                )
                after = CorpusPosition(position.epoch, epoch.file, epoch.sentence)
                if not epoch.has_more():
                    after = CorpusPosition(position.epoch + 1)
                rng = np.random.default_rng([seed, *start])
                plan = buffer.plan(self.training.batch_words, rng)
                for b in range(position.batch, len(plan)):
                    parts = [self._part(buffer, plan[b], share) for share in shares]
                    yield parts, CorpusPosition(*start, b + 1) if b + 1 < len(plan) else after
                position = after

    def _part(
        self, buffer: EncodedSentences, sentences: np.ndarray, share: tuple[int, int]
    ) -> SentenceBatch:
        batch = buffer.batch(sentences, share)
        if self.teacher is None:
            return batch
        return add_targets(batch, buffer.words(sentences[share[0] :: share[1]]), self.teacher)


class Pass:
    """One pass over the files of a text, which knows the position of its next sentence.

    Args:
        reader: of the text.
        files: its files, in the order of this pass.
        file, sentence: the first sentence: a file's index, and the sentence's index there.
    """

    def __init__(self, reader: CorpusReader, files: Sequence[Path], file: int, sentence: int):
        self._next: Sequence[str] | None
        self._sentences = (
            (f, s, words)
            for f in range(file, len(files))
            for s, words in enumerate(reader.sentences_in(files[f]))
            if f > file or s >= sentence
        )
        self._advance()

    def _advance(self) -> None:
        self.file, self.sentence, self._next = next(self._sentences, (0, 0, None))

    def has_more(self) -> bool:
        """Whether there is a next sentence."""
        return self._next is not None

    def take(self, n_words: int) -> Iterator[Sequence[str]]:
        """Sentences until they have so many words, or until the end."""
        taken = 0
        while self._next is not None and taken < n_words:
            words = self._next
            taken += len(words)
            self._advance()
            yield words


def read_ahead(items: Iterator[T], n_ahead: int = N_AHEAD) -> Generator[T, None, None]:
    """Items read by a thread, which ends when this iterator is closed.

    Args:
        items: none of them is None. An error is raised where the item would be.
        n_ahead: how many may wait to be taken.
    """
    thread = ThreadPoolExecutor(1, "read_ahead")
    try:
        waiting = deque(thread.submit(next, items, None) for _ in range(n_ahead))
        while (item := waiting.popleft().result()) is not None:
            waiting.append(thread.submit(next, items, None))
            yield item
    finally:
        thread.shutdown(cancel_futures=True)


def pinned(batches: Batches, device: torch.device) -> Batches:
    """The batches in pinned memory, which is copied to the GPU asynchronously."""
    torch.cuda.set_device(device)  # of this thread, which would open the first GPU otherwise
    for parts, position in batches:
        yield [part.pin_memory() for part in parts], position
