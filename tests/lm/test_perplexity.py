from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.characters import BOS, EOS
from spacy_elmo.lm import forward as forward_pass
from spacy_elmo.lm.perplexity import evaluate

from ..pretraining.helpers import log_probabilities, make_block, make_model, make_vocab, prose

VOCAB = make_vocab(sorted({word for words in prose() for word in words})[::2])


@pytest.mark.parametrize(("batch_words", "logits_at_once"), [(10, 2**25), (4096, 1)])
def test_against_the_definition(
    monkeypatch: pytest.MonkeyPatch, batch_words: int, logits_at_once: int
) -> None:
    monkeypatch.setattr(forward_pass, "MOST_LOGITS", logits_at_once)
    model, head = make_model(len(VOCAB))
    torch.nn.init.normal_(head.weight)  # far from uniform, so that a mistake shows
    sentences = prose()
    result = evaluate(model, head, make_block(sentences, VOCAB), batch_words)
    losses: list[list[float]] = [[], []]
    for words in sentences:
        ids = [VOCAB[word] for word in (BOS, *words, EOS)]
        rows = log_probabilities(model, head, words, ends=True)
        for found, each, targets in zip(losses, rows, (ids[1:], ids[:-1]), strict=True):
            found += [-row[target] for row, target in zip(each, targets, strict=True)]
    forward, backward = (math.exp(np.mean(each)) for each in losses)
    assert result.forward == pytest.approx(forward, rel=1e-5)
    assert result.backward == pytest.approx(backward, rel=1e-5)
    assert abs(forward - backward) > 0.01 * forward
    assert result.mean == pytest.approx(math.exp((math.log(forward) + math.log(backward)) / 2))


@pytest.mark.parametrize("is_training", [True, False])
def test_the_model_is_read_without_dropout_and_left_in_its_mode(is_training: bool) -> None:
    model, head = make_model(len(VOCAB))
    expected = evaluate(model, head, make_block(prose(), VOCAB))
    model.dropout = 0.5
    model.train(is_training)
    assert evaluate(model, head, make_block(prose(), VOCAB)) == expected
    assert model.training == is_training and torch.is_grad_enabled()


def test_unknown_words_are_counted_and_scored_as_such() -> None:
    sentences = prose()
    result = evaluate(*make_model(len(VOCAB)), make_block(sentences, VOCAB))
    words = [word for sentence in sentences for word in sentence]
    assert result.n_predicted == len(words) + len(sentences)
    assert result.n_unknown == sum(word not in VOCAB.ids for word in words) > 0
    assert result.unknown_rate == result.n_unknown / len(words)


def test_a_sample_is_always_the_same_and_no_larger_than_asked_for() -> None:
    model, head = make_model(len(VOCAB))
    block = make_block(prose() * 20, VOCAB)
    everything = evaluate(model, head, block)
    sample = evaluate(model, head, block, batch_words=50, max_words=400)
    longest = int(block.lengths.max())
    assert 200 < sample.n_predicted <= 400 + longest
    assert sample == evaluate(model, head, block, batch_words=50, max_words=400)
    assert sample.forward != everything.forward
    means = [
        found.n_predicted / (found.n_predicted - found.n_words) for found in (sample, everything)
    ]
    assert means[0] == pytest.approx(means[1], rel=0.2)  # of the lengths of sentences
    assert evaluate(model, head, block, max_words=10**6).n_predicted == everything.n_predicted
    assert evaluate(model, head, block, max_words=60).n_predicted <= 60 + longest


def test_a_loss_beyond_all_numbers_is_infinite() -> None:
    model, head = make_model(len(VOCAB))
    head.bias.data[3] = 5000.0
    assert evaluate(model, head, make_block(prose(), VOCAB)).forward == math.inf
