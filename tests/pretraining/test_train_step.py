from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from spacy_elmo.lm.encoded_sentences import EncodedSentences
from spacy_elmo.pretraining.checkpoint import WORDS_OF_THREAD, State
from spacy_elmo.pretraining.corpus import Shares, make_batch
from spacy_elmo.pretraining.distributed import ProcessGroup
from spacy_elmo.pretraining.loss import BiLMLoss
from spacy_elmo.pretraining.train_step import train_step
from spacy_elmo.util.threads import threads_for

from .helpers import make_block, make_config, make_model, make_vocab, prose

CPU = torch.device("cpu")
VOCAB = make_vocab(word for words in prose() for word in words)
BLOCK = make_block(prose(), VOCAB)
ALL = np.arange(10)
ONE = ProcessGroup(CPU)


class Alone(ProcessGroup):
    """One of several processes, whose gradients are not added to those of the others."""

    def all_reduce(self, *tensors: torch.Tensor) -> None:
        pass


def make_state(
    group: ProcessGroup = ONE, n_threads: int = 1, sampled: bool = False, **settings: Any
) -> State:
    changes: dict[str, Any] = {f"training.{name}": value for name, value in settings.items()}
    if sampled:
        changes |= {"softmax.kind": "sampled", "softmax.n_candidates": 9}
    changes["training.batch_words"] = n_threads * WORDS_OF_THREAD
    with threads_for(0, n_threads):
        return State(make_config(changes=changes), len(VOCAB), group)


def step(
    state: State, rate: float, block: EncodedSentences = BLOCK, shares: Shares = ((0, 1),),
    **settings: Any,
) -> float:  # fmt: skip
    """One step on all sentences; the loss."""
    training = make_config(changes={f"training.{k}": v for k, v in settings.items()}).training
    batch = make_batch(block, np.arange(len(block.lengths)), shares)
    return float(train_step(state, training, batch, rate))


def gradients(
    shares: Shares = ((0, 1),), group: ProcessGroup = ONE, mixed: bool = False
) -> tuple[float, list[torch.Tensor]]:
    """The loss, and the gradient of each parameter."""
    state = make_state(group, n_threads=len(shares), sampled=True, dropout=0.0)
    changes = {"mixed_precision": mixed, "max_grad_norm": 1e9}
    loss = step(state, 0.0, shares=shares, **changes)
    assert all(p.grad is not None for p in state.parameters)
    return loss, [p.grad for p in state.parameters if p.grad is not None]


def assert_same(one: list[torch.Tensor], other: list[torch.Tensor]) -> None:
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5 * float(b.abs().max()))


def test_dropout_before_the_head() -> None:
    """Also where the biLM itself drops nothing out; never in an evaluation of the loss without."""
    model, head = make_model(len(VOCAB))
    batch, losses = BLOCK.batch(ALL), {}
    for rate in (0.0, 0.5):
        settings = make_config(changes={"training.dropout": rate}).training
        loss = BiLMLoss(model.eval(), head, settings, None)
        model.generator = torch.Generator().manual_seed(0)
        losses[rate] = [float(loss(batch, None)) for _ in range(2)]
    assert losses[0.0][0] == losses[0.0][1]
    assert len({losses[0.0][0], *losses[0.5]}) == 3  # other numbers are dropped each time


@pytest.mark.parametrize("count", [3, 12])
def test_the_shares_of_processes_and_of_threads_are_one_batch(count: int) -> None:
    """Though some may hold no sentence at all, as here of twelve."""
    loss, whole = gradients()
    ranks = range(count)
    of_each = [gradients([(rank, count)], Alone(CPU, rank, count)) for rank in ranks]
    losses, grads = zip(*of_each, strict=True)
    assert sum(losses) == pytest.approx(loss, rel=1e-5)
    assert_same([torch.stack(same).sum(0) for same in zip(*grads, strict=True)], whole)
    loss_of_threads, of_threads = gradients([(thread, count) for thread in ranks])
    assert loss_of_threads == pytest.approx(loss, rel=1e-5)
    assert_same(of_threads, whole)


def test_threads_drop_out_the_same_again_but_not_as_each_other() -> None:
    """However the system orders them; sentences that are alike are dropped out differently."""
    block = make_block([["a", "b", "c"]] * 8, VOCAB)
    results = []
    for _ in range(3):
        state = make_state(n_threads=2, dropout=0.5)
        for _ in range(2):
            step(state, 0.1, block, [(0, 2), (1, 2)], max_grad_norm=1e9)
        results.append([p.detach().clone() for p in state.parameters])
        replica = state.modules[1]
        grads = [replica.model.lstm[0].weight_hr.grad, state.model.lstm[0].weight_hr.grad]
        assert not torch.allclose(grads[0] * 2, grads[1], rtol=0.01)
    assert all(map(torch.equal, results[0], results[1]))
    assert all(map(torch.equal, results[0], results[2]))


def test_each_step_draws_anew() -> None:
    state = make_state(dropout=0.5)
    losses = [step(state, 0.0) for _ in range(2)]
    assert losses[0] != losses[1]


def test_the_gradient_is_clipped() -> None:
    state = make_state()
    step(state, 0.0, max_grad_norm=1e-3)
    norms = [p.grad.norm() for p in state.parameters if p.grad is not None]
    assert float(torch.stack(norms).norm()) == pytest.approx(1e-3, rel=1e-3)


def test_mixed_precision_is_near() -> None:
    loss, exact = gradients()
    mixed_loss, mixed = gradients(mixed=True)
    assert mixed_loss != loss
    assert mixed_loss == pytest.approx(loss, rel=0.01)
    for a, b in zip(exact, mixed, strict=True):
        assert b.dtype == torch.float32
        assert float((a - b).norm()) < 0.05 * float(a.norm()) + 1e-6
