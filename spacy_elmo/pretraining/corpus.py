"""A text to training batches, in an order that follows from the seed alone."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ..bilm.characters import CharacterIds
from ..lm.encoded_sentences import EncodedSentences, SentenceBatch
from ..lm.vocabulary import Vocabulary
from ..text.shards import CorpusReader
from ..util.settings import Settings, at_least
from ..util.threads import results_ahead
from .config import CorpusSettings, TrainingSettings
from .teacher import Teacher, add_targets


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


Shares = Sequence[tuple[int, int]]  # see `EncodedSentences.batch`
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
        self, position: CorpusPosition, shares: Shares = ((0, 1),), n_threads: int = 1
    ) -> Batches:
        """Batches from a position on, each with the position after it; never ends.

        Args:
            position: of the first batch.
            shares: of each batch; only these are made into tensors.
            n_threads: that make as many batches while those before are used; 1: none is made ahead.

        Raises:
            ValueError: the text has become empty.
        """
        all_files, seed = self.reader.files(), self.training.seed
        while True:
            order = np.random.default_rng([seed, position.epoch]).permutation(len(all_files))
            files = [all_files[i] for i in order]
            epoch = Pass(self.reader, files, position.file, position.sentence)
            if epoch.next is None:
                raise ValueError(f"The training text is empty now: {all_files[0]} and others.")
            while epoch.next is not None:
                start = (position.epoch, *epoch.next[:2])
                sentences = epoch.take(self.settings.buffer_words)
                buffer = EncodedSentences(
                    sentences, self.vocab, self.settings.max_words, self.to_ids
                )
                after = CorpusPosition(position.epoch + 1)
                if epoch.next is not None:
                    after = CorpusPosition(position.epoch, *epoch.next[:2])
                rng = np.random.default_rng([seed, *start])
                plan = buffer.plan(self.training.batch_words, rng)
                todo = plan[position.batch :]
                made = results_ahead(partial(self._make, buffer, shares), todo, n_threads)
                for number, (_, batches) in enumerate(made, position.batch + 1):
                    is_last = number == len(plan)
                    yield batches(), after if is_last else CorpusPosition(*start, number)
                position = after

    def _make(
        self, buffer: EncodedSentences, shares: Shares, sentences: np.ndarray
    ) -> list[SentenceBatch]:
        """The wanted shares of the batch of some sentences."""
        batches = [buffer.batch(sentences, share) for share in shares]
        if self.teacher is None:
            return batches
        words = [buffer.words(sentences[rank::n_shares]) for rank, n_shares in shares]
        return [add_targets(*each, self.teacher) for each in zip(batches, words, strict=True)]


class Pass:
    """One pass over the files of a text.

    Args:
        reader: of the text.
        files: its files, in the order of this pass.
        file, sentence: the first sentence: a file's index, and the sentence's index there.

    Attributes:
        next: the file's and the sentence's index of the next sentence, and its words; None at the
            end.
    """

    def __init__(self, reader: CorpusReader, files: Sequence[Path], file: int, sentence: int):
        self._rest = (
            (f, s, words)
            for f in range(file, len(files))
            for s, words in enumerate(reader.sentences_in(files[f]))
            if f > file or s >= sentence
        )
        self.next = next(self._rest, None)

    def take(self, n_words: int) -> Iterator[Sequence[str]]:
        """Sentences until they have so many words, or until the end."""
        taken = 0
        while self.next is not None and taken < n_words:
            *_, words = self.next
            taken += len(words)
            self.next = next(self._rest, None)
            yield words
