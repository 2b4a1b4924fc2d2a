"""States carried from sentence to sentence, in training and in evaluation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.warm_state import compute_warm_state
from spacy_elmo.lm.forward import hidden_states, losses
from spacy_elmo.lm.stream_state import StreamState
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.loss import BiLMLoss
from spacy_elmo.pretraining.state import CHECKPOINT
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.weights.find import find_weights, load_bilm

from ..pretraining.helpers import (
    make_block,
    make_config,
    make_model,
    make_vocab,
    prose,
    same_weights,
    stop_after,
    write_text,
)

VOCAB = make_vocab(word for words in prose()[:6] for word in words)


def carried_run(path: Path, n_streams: int = 4) -> PretrainConfig:
    train = write_text(path / "train.txt", prose() * 2)
    dev = write_text(path / "dev.txt", prose()[::3])
    return make_config(
        train,
        dev,
        {
            "training.state": "carried",
            "training.n_streams": n_streams,
            "model.initial_state": "warm",
            "training.dropout": 0.2,
        },
    )


def test_streams_hold_each_sentence_once_in_an_order_of_the_seed() -> None:
    block = make_block(prose(), VOCAB)
    batches = block.streams(4, np.random.default_rng(3))
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert sorted(np.concatenate(batches)) == list(range(10))
    again = block.streams(4, np.random.default_rng(3))
    assert all((a == b).all() for a, b in zip(batches, again, strict=True))
    assert (
        np.concatenate(batches) != np.concatenate(block.streams(4, np.random.default_rng(4)))
    ).any()


def test_each_sentence_starts_where_the_one_before_it_ended() -> None:
    """Read one by one with explicit states, the streams' losses are the same."""
    model, head = make_model(len(VOCAB))
    block, carried = make_block(prose(), VOCAB), StreamState(model.config, 4)
    loss = BiLMLoss(model, head, 0.0, carried)
    states = {}
    for batch in block.streams(4, np.random.default_rng(0)):
        expected, n_predicted = 0.0, 0
        for stream, sentence in enumerate(batch):
            with torch.no_grad():
                read = hidden_states(model, block.batch(np.array([sentence])), states.get(stream))
                expected += float(sum(nats.sum() for nats in losses(head, read)))
            n_predicted += 2 * len(read.targets_f)
            states[stream] = read.state
        mean = loss(block.batch(batch), None).item()
        assert mean == pytest.approx(expected / n_predicted)


def test_no_gradient_passes_from_one_batch_to_the_one_before() -> None:
    model, head = make_model(len(VOCAB))
    block = make_block(prose(), VOCAB)
    carried, rng = StreamState(model.config, 5), np.random.default_rng(0)
    first, second = block.streams(5, rng)
    BiLMLoss(model, head, 0.0, carried)(block.batch(first), None)
    before = carried.first(5)
    BiLMLoss(model, head, 0.0, carried)(block.batch(second), None).backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    fresh = StreamState(model.config, 5)
    fresh.update(before)
    BiLMLoss(model, head, 0.0, fresh)(block.batch(second), None).backward()
    assert all(torch.equal(p.grad, e) for p, e in zip(model.parameters(), expected, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(before, fresh.first(5), strict=True))


@pytest.mark.parametrize("max_words", [100, 5])
def test_what_is_trained_so_starts_warm(tmp_path: Path, max_words: int) -> None:
    config = carried_run(tmp_path)
    config = replace(config, corpus=replace(config.corpus, max_words=max_words))
    pretrain(config, tmp_path / "out", quiet=True)
    weights = find_weights(tmp_path / "out" / "model-last")
    assert weights.config().initial_state == "warm"
    assert weights.load().warm_h is not None
    model = load_bilm(weights)
    # Of the training text from its beginning.
    expected = compute_warm_state(model, [words[:max_words] for words in prose() * 2])
    assert all(
        torch.allclose(a, b, atol=1e-6) for a, b in zip(model.warm_state(), expected, strict=True)
    )


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = carried_run(tmp_path)
    pretrain(config, tmp_path / "whole", quiet=True)
    stop_after(monkeypatch, 7)
    assert pretrain(config, tmp_path / "parts", quiet=True).step == 7
    monkeypatch.undo()
    assert pretrain(config, tmp_path / "parts", resume=True, quiet=True).step == 20
    for name in (CHECKPOINT, "model-last/weights.safetensors", "model-last/head.safetensors"):
        assert same_weights(tmp_path / "whole" / name, tmp_path / "parts" / name)
