from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from spacy_elmo.bilm.lstm_layer import LSTMLayer
from spacy_elmo.lm.encoded_sentences import SentenceBatch
from spacy_elmo.pretraining.distributed import ProcessGroup
from spacy_elmo.pretraining.log import read_log
from spacy_elmo.pretraining.loss import BiLMLoss
from spacy_elmo.pretraining.state import Progress, State
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.pretraining.train_step import train_step

from .helpers import SENTENCES, make_block, make_config, make_model, make_vocab, prose, write_text

CPU = torch.device("cpu")
VOCAB = make_vocab(word for words in prose() for word in words)
BLOCK = make_block(prose(), VOCAB)
ALL = np.arange(10)
ONE = ProcessGroup(CPU)


class Alone(ProcessGroup):
    """One of several processes, whose gradients are not averaged."""

    def wrap(self, module: nn.Module) -> nn.Module:
        return module


def make_state(
    group: ProcessGroup = ONE,
    progress: Progress | None = None,
    n_threads: int = 1,
    sampled: bool = False,
    **settings: Any,
) -> State:
    changes: dict[str, Any] = {f"training.{name}": value for name, value in settings.items()}
    if sampled:
        changes |= {"softmax.kind": "sampled", "softmax.n_candidates": 9}
    return State(make_config(changes=changes), len(VOCAB), group, progress, n_threads=n_threads)


def gradients(
    parts: list[SentenceBatch], group: ProcessGroup = ONE, mixed: bool = False, n_threads: int = 1
) -> tuple[float, list[torch.Tensor]]:
    """The loss, and the gradient of each parameter."""
    changes = {"dropout": 0.0, "mixed_precision": mixed, "max_grad_norm": 1e9}
    state = make_state(group, n_threads=n_threads, sampled=True, **changes)
    loss = train_step(state, parts, 0.0)
    assert all(p.grad is not None for p in state.parameters)
    return float(loss), [p.grad for p in state.parameters if p.grad is not None]


def assert_same(one: list[torch.Tensor], other: list[torch.Tensor]) -> None:
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-7)


def test_dropout_before_the_head() -> None:
    """Also where the biLM itself drops nothing out; never in an evaluation of the loss without."""
    model, head = make_model(len(VOCAB))
    batch, losses = BLOCK.batch(ALL), {}
    for rate in (0.0, 0.5):
        loss = BiLMLoss(model.eval(), head, rate)
        loss.generator = torch.Generator().manual_seed(0)
        losses[rate] = [float(loss(batch, None)) for _ in range(2)]
    assert losses[0.0][0] == losses[0.0][1]
    assert len({losses[0.0][0], *losses[0.5]}) == 3  # other numbers are dropped each time


@pytest.mark.parametrize("cuts", [[5], [1], [2, 3, 9]])
def test_several_batches_are_one(cuts: list[int]) -> None:
    """However many predictions each of them has."""
    loss, whole = gradients([BLOCK.batch(ALL)])
    parts = [BLOCK.batch(sentences) for sentences in np.split(ALL, cuts)]
    loss_of_parts, of_parts = gradients(parts)
    assert loss_of_parts == pytest.approx(loss, rel=1e-6)
    assert_same(of_parts, whole)


@pytest.mark.parametrize("count", [2, 3, 12])
def test_the_shares_of_processes_are_one_batch(count: int) -> None:
    """Though some may hold no sentence at all, as here of twelve."""
    loss, whole = gradients([BLOCK.batch(ALL)])
    losses, grads = [], []
    for rank in range(count):
        parts = [BLOCK.batch(half, (rank, count)) for half in (ALL[:4], ALL[4:])]
        loss_of_share, of_share = gradients(parts, Alone(CPU, rank, count))
        losses.append(loss_of_share)
        grads.append(of_share)
    assert sum(losses) == pytest.approx(loss, rel=1e-6)
    assert_same([torch.stack(of_each).mean(0) for of_each in zip(*grads, strict=True)], whole)


@pytest.mark.parametrize("n_threads", [2, 3, 12])
def test_the_shares_of_threads_are_one_batch(n_threads: int) -> None:
    """Also those of several micro-batches, and where some hold no sentence."""
    loss, whole = gradients([BLOCK.batch(ALL)])
    parts = [
        BLOCK.batch(half, (thread, n_threads))
        for half in (ALL[:4], ALL[4:])
        for thread in range(n_threads)
    ]
    loss_of_threads, of_threads = gradients(parts, n_threads=n_threads)
    assert loss_of_threads == pytest.approx(loss, rel=1e-6)
    assert_same(of_threads, whole)


def test_threads_drop_out_the_same_again_but_not_as_each_other() -> None:
    """However the system orders them; sentences that are alike are dropped out differently."""
    block = make_block([["a", "b", "c"]] * 8, VOCAB)
    parts = [block.batch(np.arange(8), (thread, 2)) for thread in range(2)]
    results = []
    for _ in range(3):
        state = make_state(n_threads=2, dropout=0.5)
        for _ in range(2):
            train_step(state, parts, 0.1)
        results.append([p.detach().clone() for p in state.parameters])
        (replica,) = state.modules_of_threads()[1]
        grads = [replica.model.lstm[0].weight_hr.grad, state.model.lstm[0].weight_hr.grad]
        assert not torch.allclose(grads[0] * 2, grads[1], rtol=0.01)
    assert all(map(torch.equal, results[0], results[1]))
    assert all(map(torch.equal, results[0], results[2]))


def test_shares_hold_each_sentence_once() -> None:
    shares = [BLOCK.batch(ALL, (rank, 3)) for rank in range(3)]
    whole = BLOCK.batch(ALL)
    assert sorted(n for share in shares for n in share.lengths) == sorted(whole.lengths)
    assert [share.lengths for share in shares] == [whole.lengths[rank::3] for rank in range(3)]
    assert {share.total_words for share in shares} == {whole.n_words}
    assert {share.total_predictions for share in shares} == {whole.n_predicted}
    assert sum(share.n_words for share in shares) == whole.n_words


def test_the_biLM_is_frozen_while_the_head_is_trained_first() -> None:
    state = make_state(progress=Progress(head_first=1))
    model = state.model
    before = [p.clone() for p in state.parameters]
    train_step(state, [BLOCK.batch(ALL)], 0.1)
    assert all(p.grad is None for p in model.parameters())
    changed = [not torch.equal(a, b) for a, b in zip(before, state.parameters, strict=True)]
    assert changed == [False] * len(list(model.parameters())) + [True, True]
    train_step(state, [BLOCK.batch(ALL)], 0.1)
    assert all(p.grad is not None for p in model.parameters())
    assert not any(torch.equal(a, b) for a, b in zip(before, state.parameters, strict=True))


def test_mixed_precision_is_near() -> None:
    loss, exact = gradients([BLOCK.batch(ALL)])
    mixed_loss, mixed = gradients([BLOCK.batch(ALL)], mixed=True)
    assert mixed_loss != loss
    assert mixed_loss == pytest.approx(loss, rel=0.01)
    for a, b in zip(exact, mixed, strict=True):
        assert b.dtype == torch.float32
        assert float((a - b).norm()) < 0.05 * float(a.norm()) + 1e-6


def test_what_encoder_and_lstms_return_is_not_half(monkeypatch: pytest.MonkeyPatch) -> None:
    types: list[torch.dtype] = []

    def note(layer: nn.Module, inputs: tuple[torch.Tensor], outputs: tuple[torch.Tensor]) -> None:
        types.extend(tensor.dtype for tensor in outputs)

    model, _ = make_model(len(VOCAB))
    layer = model.lstm[0]
    assert isinstance(layer, LSTMLayer)
    layer.register_forward_hook(note)
    batch = BLOCK.batch(ALL)
    with torch.autocast("cpu", torch.bfloat16):
        x = model.char_cnn(batch.ids)
        layers, _ = model(x, batch.tokens, batch.lengths)
    exact, _ = model(x, batch.tokens, batch.lengths)
    assert {x.dtype, *types} == {torch.float32}
    assert float((layers - exact).detach().norm() / exact.detach().norm()) < 0.02


def test_runs(tmp_path: Path) -> None:
    """In mixed precision, several batches a step."""
    train = write_text(tmp_path / "train.txt", prose() + SENTENCES)
    changes = {"training.mixed_precision": True, "training.accumulate_gradient": 3}
    for name, of_run in [
        ("mixed", changes),
        ("exact", {**changes, "training.mixed_precision": False}),
    ]:
        settings = {"training.dropout": 0.0, "training.log_every": 1, **of_run}
        pretrain(make_config(train, train, settings), tmp_path / name, quiet=True)
    mixed, exact = (
        [entry["loss"] for entry in read_log(tmp_path / name / "log.jsonl") if "loss" in entry]
        for name in ("mixed", "exact")
    )
    np.testing.assert_allclose(mixed, exact, rtol=0.02)
    assert mixed[-1] < 0.9 * mixed[0]


def chain(n_sentences: int, seed: int) -> list[list[str]]:
    """Sentences in which each of 200 words has four others that may follow it."""
    of_words, rng = np.random.default_rng(0), np.random.default_rng(seed)
    after = of_words.integers(0, 200, size=(200, 4))
    sentences = []
    for _ in range(n_sentences):
        word, words = int(rng.zipf(1.5)) % 200, []
        for _ in range(8):
            words.append(f"w{word}")
            word = int(after[word, rng.choice(4, p=[0.5, 0.3, 0.15, 0.05])])
        sentences.append(words)
    return sentences


@pytest.mark.slow
def test_the_sampled_softmax_learns_what_the_full_one_does(tmp_path: Path) -> None:
    train = write_text(tmp_path / "train.txt", chain(2500, 1))
    dev = write_text(tmp_path / "dev.txt", chain(300, 2))
    results = []
    for kind in ("full", "sampled"):
        changes = {
            "model.projection_dim": 32,
            "model.dim": 64,
            "softmax.kind": kind,
            "softmax.n_candidates": 50,
            "training.batch_words": 300,
            "training.max_steps": 1500,
            "training.learning_rate": 0.01,
            "training.warmup_steps": 20,
            "training.decay_steps": 1000,
            "training.dropout": 0.0,
            "training.eval_every": 1500,
        }
        pretrain(make_config(train, dev, changes), tmp_path / kind, quiet=True)
        results.append(read_log(tmp_path / kind / "log.jsonl")[-1]["mean"])
    full, sampled = results
    assert full < 7  # something was learned: the text has 200 words
    assert abs(sampled / full - 1) < 0.05
