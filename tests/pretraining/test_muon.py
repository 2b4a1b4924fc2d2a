from __future__ import annotations

from pathlib import Path

import pytest
import torch

from spacy_elmo.pretraining.config import TrainingSettings
from spacy_elmo.pretraining.muon import RMS, Muon, orthogonalise
from spacy_elmo.pretraining.run.checkpoint import CHECKPOINT
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.pretraining.train_step import make_optimizers

from .helpers import make_config, make_model, prose, same_weights, stop_after, write_text


@pytest.mark.parametrize("shape", [(2, 12, 40), (3, 40, 12), (2, 16, 16)])
def test_singular_values_become_about_one(shape: tuple[int, int, int]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    u, _, v = torch.linalg.svd(x, full_matrices=False)
    found = orthogonalise(x)
    assert found.shape == shape
    values = (u.mT @ found @ v.mT).diagonal(dim1=1, dim2=2)  # the same directions
    assert float(values.min()) > 0.3
    assert float(values.max()) < 1.5
    torch.testing.assert_close(u @ values.diag_embed() @ v, found, rtol=0, atol=1e-4)


def test_each_gate_of_each_direction_is_a_matrix() -> None:
    """However different their gradients are in size, their updates are as large as Adam's."""
    weight = torch.nn.Parameter(torch.zeros(2, 4 * 32, 8))
    weight.grad = torch.randn(weight.shape, generator=torch.Generator().manual_seed(0))
    weight.grad *= torch.logspace(-4, 3, 8).view(2, 4, 1, 1).expand(2, 4, 32, 8).reshape(2, 128, 8)
    Muon([weight], lr=0.01).step()
    sizes = weight.detach().view(8, 32, 8).square().mean(dim=(1, 2)).sqrt()
    torch.testing.assert_close(sizes, torch.full((8,), RMS * 0.01), rtol=0.4, atol=0)


def test_momentum_adds_up_the_gradients() -> None:
    weight = torch.nn.Parameter(torch.zeros(2, 3, 5))
    optimizer, grads = Muon([weight], lr=1.0), torch.randn(2, 2, 3, 5)
    for grad in grads:
        weight.grad = grad
        optimizer.step()
    expected = 0.05 * 0.95 * grads[0] + 0.05 * grads[1]
    torch.testing.assert_close(optimizer.state[weight]["momentum"], expected)


def test_only_the_matrices_of_the_lstm_are_muons() -> None:
    model, head = make_model(9)
    optimizers = make_optimizers(
        model, [*model.parameters(), *head.parameters()], TrainingSettings(optimizer="muon")
    )
    mine = {id(p) for group in optimizers["muon"].param_groups for p in group["params"]}
    theirs = {id(p) for group in optimizers["optimizer"].param_groups for p in group["params"]}
    matrices = [
        w for layer in model.lstm for w in (layer.weight_ih, layer.weight_hh, layer.weight_hr)
    ]
    assert mine == {id(p) for p in matrices}
    assert mine | theirs == {id(p) for p in (*model.parameters(), *head.parameters())}
    assert not mine & theirs


def test_a_run_learns_and_is_resumed_to_the_last_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = write_text(tmp_path / "text.txt", prose())
    settings = {"training.optimizer": "muon", "training.muon_learning_rate": 0.05}
    config = make_config(text, text, settings)
    whole = pretrain(config, tmp_path / "whole", quiet=True)
    with monkeypatch.context() as patch:
        stop_after(patch, 7)
        assert pretrain(config, tmp_path / "parts", quiet=True).step == 7
    resumed = pretrain(config, tmp_path / "parts", resume=True, quiet=True)
    assert whole.best == resumed.best
    assert same_weights(tmp_path / "whole" / CHECKPOINT, tmp_path / "parts" / CHECKPOINT)
    still = make_config(text, text, settings | {"training.muon_learning_rate": 1e-9})
    frozen = pretrain(still, tmp_path / "still", quiet=True)
    assert whole.best is not None and frozen.best is not None and whole.best < frozen.best
