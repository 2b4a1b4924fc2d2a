from __future__ import annotations

import threading
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.bilm.characters import BOS, EOS, CharacterIds
from spacy_elmo.bilm.sentence_batches import id_tensor
from spacy_elmo.lm.encoded_sentences import SentenceBatch
from spacy_elmo.pretraining.config import CorpusSettings, PretrainConfig, TrainingSettings
from spacy_elmo.pretraining.corpus import CorpusPosition, TrainingCorpus
from spacy_elmo.text.shards import Shards

from .helpers import make_block, make_vocab, prose, same_batches, write_text

WORDS = sorted({word for words in prose() for word in words})
VOCAB = make_vocab(WORDS[::2])  # every other word is unknown
BATCH_WORDS = 25


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Five shards of distinct sentences: each names its shard and number."""
    directory = tmp_path_factory.mktemp("shards")
    return [
        write_text(
            directory / f"{shard}.txt",
            ([f"s{shard}", f"n{number}", *words] for number, words in enumerate(prose())),
        )
        for shard in range(5)
    ]


def make_corpus(shards: list[Path], buffer_words: int = 250, seed: int = 0) -> TrainingCorpus:
    config = PretrainConfig(
        corpus=CorpusSettings(buffer_words=buffer_words),
        training=TrainingSettings(batch_words=BATCH_WORDS, seed=seed),
    )
    return TrainingCorpus(Shards(shards), VOCAB, CharacterIds(2), config)


def read_words(batch: SentenceBatch) -> list[list[str]]:
    """A batch's sentences with their boundaries, decoded from its bytes."""
    words = []
    for row in batch.ids[batch.tokens].tolist():
        ids = [i - 1 for i in row[1:] if i <= 256]
        mark = BOS if row[1] == 257 else EOS if row[1] == 258 else None
        words.append(mark or bytes(ids).decode())
    sentences = []
    for length in batch.lengths:
        sentences.append(words[:length])
        words = words[length:]
    assert not words
    return sentences


def epoch_of(corpus: TrainingCorpus, epoch: int) -> list[SentenceBatch]:
    batches = []
    for batch, after in corpus.batches(CorpusPosition(epoch)):
        batches += batch.shares
        if after.epoch > epoch:
            break
    assert after == CorpusPosition(epoch + 1)
    return batches


def test_an_epoch_has_every_sentence_once(shards) -> None:
    corpus = make_corpus(shards)
    expected = Counter(
        (BOS, f"s{shard}", f"n{number}", *words, EOS)
        for shard in range(5)
        for number, words in enumerate(prose())
    )
    for epoch in range(2):
        read = (tuple(s) for batch in epoch_of(corpus, epoch) for s in read_words(batch))
        assert Counter(read) == expected


def test_batches_are_bucketed_by_length_and_of_the_size_asked_for(shards) -> None:
    batches = epoch_of(make_corpus(shards), 0)
    longest = max(map(len, prose())) + 4
    assert all(sum(batch.lengths) < BATCH_WORDS + longest for batch in batches)
    total = sum(sum(batch.lengths) for batch in batches)
    assert len(batches) <= total / BATCH_WORDS + 3  # three groups, each with a rest
    padded = sum(len(batch.lengths) * max(batch.lengths) for batch in batches)
    assert padded < 1.1 * total  # unsorted sentences would need over 1.5 times


@pytest.mark.parametrize("buffer_words", [1, 250])
def test_reading_goes_on_from_any_place(shards, buffer_words) -> None:
    corpus = make_corpus(shards, buffer_words)
    whole = list(islice(corpus.batches(CorpusPosition()), 90))
    assert whole[-1][1].epoch >= 1
    for done in range(0, 80, 7):
        position = whole[done][1]
        for (batch, after), (expected, after_expected) in zip(
            corpus.batches(position), whole[done + 1 : done + 9], strict=False
        ):
            assert same_batches(*batch.shares, *expected.shares)
            assert after == after_expected


def test_batches_that_threads_make_are_the_same(shards) -> None:
    """They end with who uses them."""
    corpus, before = make_corpus(shards), threading.active_count()
    alone, ahead = (corpus.batches(CorpusPosition(), n_threads=n) for n in (1, 3))
    pairs = zip(ahead, islice(alone, 90), strict=False)
    for (batch, after), (expected, after_expected) in pairs:
        assert same_batches(*batch.shares, *expected.shares) and after == after_expected
        assert threading.active_count() > before
    ahead.close()
    assert threading.active_count() == before


def test_tokens_targets_and_bytes_belong_together() -> None:
    sentences = prose()
    block = make_block(sentences, VOCAB)
    batch = block.batch(np.array([3, 0, 7]))
    expected = [[BOS, *sentences[i], EOS] for i in (3, 0, 7)]
    assert read_words(batch) == expected
    assert batch.targets.tolist() == [VOCAB[word] for words in expected for word in words]
    assert batch.n_words == sum(len(sentences[i]) for i in (3, 0, 7))
    # Each distinct word once, with the positions that its vector needs and no more.
    types = sorted({word for words in expected for word in words})
    assert len(batch.ids) == len(types)
    ids = id_tensor(*CharacterIds(max_width=2)(types))
    assert sorted(batch.ids.tolist()) == sorted(ids.tolist())


@settings(max_examples=50)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(1, 12))
def test_cutting_a_sentence_loses_no_word(lengths: list[int], max_words: int) -> None:
    numbers = iter(range(1000))
    sentences = [[str(next(numbers)) for _ in range(length)] for length in lengths]
    block = make_block(sentences, VOCAB, max_words)
    batch = block.batch(np.arange(len(block.lengths)))
    pieces = read_words(batch)
    assert all(len(piece) <= max_words + 2 for piece in pieces)
    assert all(piece[0] == BOS and piece[-1] == EOS for piece in pieces)
    assert len(pieces) == sum(-(-length // max_words) for length in lengths)
    assert [w for piece in pieces for w in piece[1:-1]] == [w for s in sentences for w in s]


@pytest.mark.parametrize(("n_files", "buffer_words", "word"), [(5, 1, 1), (1, 10_000, 2)])
def test_each_epoch_has_an_order_of_its_own(
    shards: list[Path], n_files: int, buffer_words: int, word: int
) -> None:
    """Of the files, and of the sentences of a file."""
    corpus, orders = make_corpus(shards[:n_files], buffer_words), set()
    for epoch in range(3):
        read = (words[word] for batch in epoch_of(corpus, epoch) for words in read_words(batch))
        orders.add(tuple(dict.fromkeys(read)))
    assert len(orders) == 3
