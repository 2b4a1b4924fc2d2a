"""What a run will take."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import pytest
import torch

from spacy_elmo.pretraining.data.corpus import CorpusPosition
from spacy_elmo.pretraining.learner import Learner
from spacy_elmo.pretraining.loss import BiLMLoss
from spacy_elmo.pretraining.run.distributed import Processes
from spacy_elmo.pretraining.run.given import Given
from spacy_elmo.pretraining.run.profile import TRIALS, Estimate, rehearse
from spacy_elmo.pretraining.run.setup import prepare
from spacy_elmo.pretraining.train import pretrain

from .helpers import SENTENCES, make_config, make_model, prose, same_batches, write_text


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_text(tmp_path / "text.txt", (prose() + SENTENCES) * 5)


@pytest.mark.parametrize("n_parts", [1, 2])
def test_a_rehearsal_changes_nothing(text: Path, tmp_path: Path, n_parts: int) -> None:
    run = prepare(Given(make_config(text, text)), tmp_path / "out", False, lambda _: None)
    model, head = make_model(len(run.vocab))
    learner = Learner(BiLMLoss(model, head, 0.0), Processes(torch.device("cpu")))
    before = {name: tensor.clone() for name, tensor in learner.loss.state_dict().items()}
    batches = run.corpus.batches(CorpusPosition())
    estimate, batches = rehearse(learner, batches, None, n_parts, has_optimizer_state=False)
    assert 0 < estimate.seconds < 10
    assert all(torch.equal(before[n], t) for n, t in learner.loss.state_dict().items())
    assert all(p.grad is None for p in learner.loss.parameters())
    # None of the batches is lost.
    n = TRIALS * n_parts + 2
    for (batch, place), (same, of_same) in zip(
        islice(batches, n), islice(run.corpus.batches(CorpusPosition()), n), strict=True
    ):
        assert same_batches(batch, same)
        assert place == of_same


def test_it_is_told_before_the_first_step(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = {"training.state": "carried", "model.initial_state": "warm"}
    config = make_config(text, text, changes)
    pretrain(config, tmp_path / "told")
    said = capsys.readouterr().err
    found = re.search(r"About 0:00:\d\d for an epoch of (\d+) steps, 0:00:\d\d for 20 steps", said)
    assert found is not None
    assert said.index("About") < said.index("step 1")
    pretrain(config, tmp_path / "quiet", quiet=True)
    for name in ("weights", "head"):
        one, other = (
            (tmp_path / run / "model-last" / f"{name}.safetensors").read_bytes()
            for run in ("told", "quiet")
        )
        assert one == other


def test_what_it_says() -> None:
    estimate = Estimate(seconds=0.5, bytes=900 * 2**20)
    assert estimate.describe(7200, 3600) == (
        "About 0:30:00 for an epoch of 3,600 steps, 1:00:00 for 7,200 steps, 900 MB of memory"
    )
    assert Estimate(2.0, None).describe(30, None) == "About 0:01:00 for 30 steps"
