"""A text as training batches, in an order that only the seed decides."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import NonNegativeInt

from ..bilm.characters import CharacterIds
from ..lm.encoded_sentences import EncodedSentences, SentenceBatch
from ..lm.vocabulary import Vocabulary
from ..text.readers import CorpusReader
from ..util.threads import prefetch_map
from .config import PretrainConfig
from .teacher import Targets, Teacher


class CorpusPosition(NamedTuple):
    """The next batch of a `TrainingCorpus`.

    Attributes:
        epoch: the number of complete passes over the text.
        file, sentence: where the shuffle buffer begins: the index of a file in the order of this
            epoch, and of a sentence in that file.
        batch: the index of the batch in that buffer.
    """

    epoch: NonNegativeInt = 0
    file: NonNegativeInt = 0
    sentence: NonNegativeInt = 0
    batch: NonNegativeInt = 0


class TrainingBatch(NamedTuple):
    """The part of a batch that one process reads.

    Attributes:
        shares: the sentences, a share for each thread; a share may be empty.
        teacher_targets: the teacher's vectors for each share.
        n_words: the number of words in the whole batch, without boundaries.
        n_predicted: the number of predictions that each direction makes in the whole batch.
    """

    shares: list[SentenceBatch]
    teacher_targets: list[Targets | None]
    n_words: int
    n_predicted: int


Shares = Sequence[tuple[int, int]]  # (i, n): every n-th sentence of a batch, from the i-th on
# Each batch with the position after it: a resumed run loses no batch that was read ahead.
Batches = Generator[tuple[TrainingBatch, CorpusPosition], None, None]


@dataclass(frozen=True)
class TrainingCorpus:
    """An endless stream of batches from a text of any size.

    Each epoch reads the files in a new random order into a shuffle buffer. The sentences in the
    buffer are sorted by length and grouped into batches, and the batches are shuffled. The seed
    and the position determine all of this, so a run can resume at any batch.

    Attributes:
        reader: reads the text.
        vocab: the vocabulary of the head.
        to_ids: the biLM's `CharacterIds`.
        config: the settings of the run, of which [corpus], ``seed`` and ``batch_words`` are used.
        teacher: gives vectors for the words, or None.
    """

    reader: CorpusReader
    vocab: Vocabulary
    to_ids: CharacterIds
    config: PretrainConfig
    teacher: Teacher | None = None

    def batches(
        self, position: CorpusPosition, shares: Shares = ((0, 1),), n_threads: int = 1
    ) -> Batches:
        """Yield batches without end, each with the position after it.

        Args:
            position: the first batch.
            shares: the shares of each batch that this process reads.
            n_threads: threads that prepare batches ahead of time; 1 for none.

        Raises:
            ValueError: the text is empty now, or a file cannot be read.
        """
        all_files, seed = self.reader.files(), self.config.training.seed
        settings = self.config.corpus
        while True:
            epoch = position.epoch
            order = np.random.default_rng([seed, epoch]).permutation(len(all_files))
            sentences = self._read([all_files[i] for i in order], position)
            first = next(sentences, None)
            if first is None:
                raise ValueError(f"The training text is empty now: {all_files[0]} and others.")
            while first is not None:
                start = (epoch, *first[:2])
                words = take(chain([first], sentences), settings.buffer_words)
                buffer = EncodedSentences(words, self.vocab, settings.max_words, self.to_ids)
                first = next(sentences, None)
                last = (epoch + 1,) if first is None else (epoch, *first[:2])
                rng = np.random.default_rng([seed, *start])
                plan = buffer.plan(self.config.training.batch_words, rng)
                prepare = partial(make_batch, buffer, shares=shares, teacher=self.teacher)
                results = prefetch_map(prepare, plan[position.batch :], n_threads)
                for number, (_, result) in enumerate(results, position.batch + 1):
                    after = last if number == len(plan) else (*start, number)
                    yield result(), CorpusPosition(*after)
                position = CorpusPosition(*last)

    def _read(
        self, files: Sequence[Path], position: CorpusPosition
    ) -> Iterator[tuple[int, int, list[str]]]:
        """Yield each sentence from a position on, with the indices of its file and in its file."""
        for f in range(position.file, len(files)):
            for s, words in enumerate(self.reader.sentences_in(files[f])):
                if f > position.file or s >= position.sentence:
                    yield f, s, words


def make_batch(
    buffer: EncodedSentences,
    sentences: np.ndarray,
    shares: Shares = ((0, 1),),
    teacher: Teacher | None = None,
) -> TrainingBatch:
    """The batch of the sentences with these indices ``(B,)``.

    Neighbours, which are of similar length, go to different shares.
    """
    parts = [sentences[i::n] for i, n in shares]
    targets = [teacher.targets(buffer.words(part)) if teacher else None for part in parts]
    n_tokens, n_sentences = int(buffer.lengths[sentences].sum()), len(sentences)
    sizes = n_tokens - 2 * n_sentences, n_tokens - n_sentences
    return TrainingBatch([buffer.batch(part) for part in parts], targets, *sizes)


def take(sentences: Iterator[tuple[int, int, list[str]]], n_words: int) -> Iterator[list[str]]:
    """Yield sentences until they have this many words; the sentence that reaches it is the last."""
    for *_, words in sentences:
        yield words
        n_words -= len(words)
        if n_words <= 0:
            return
