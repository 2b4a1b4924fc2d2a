"""Time and memory of a run."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import pytest
import torch

from spacy_elmo.pretraining.data.corpus import CorpusPosition
from spacy_elmo.pretraining.run.distributed import ProcessGroup
from spacy_elmo.pretraining.run.prepare_run import prepare_run
from spacy_elmo.pretraining.run.profile import N_STEPS, Profile, profile_steps
from spacy_elmo.pretraining.run.train_state import create_train_state
from spacy_elmo.pretraining.train import pretrain

from .helpers import SENTENCES, make_config, prose, same_batches, write_text


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_text(tmp_path / "text.txt", (prose() + SENTENCES) * 5)


@pytest.mark.parametrize("n_parts", [1, 2])
def test_profiling_changes_nothing(text: Path, tmp_path: Path, n_parts: int) -> None:
    group = ProcessGroup(torch.device("cpu"))
    config = make_config(text, text, {"training.accumulate_gradient": n_parts})
    run, progress = prepare_run(config, tmp_path / "out", group, False, lambda _: None)
    state = create_train_state(run, group, progress)
    before = {name: tensor.clone() for name, tensor in state.loss.state_dict().items()}
    batches = run.corpus.batches(CorpusPosition())
    profile, batches = profile_steps(state, batches)
    assert 0 < profile.seconds < 10
    assert all(torch.equal(before[n], t) for n, t in state.loss.state_dict().items())
    assert all(p.grad is None for p in state.parameters)
    assert (progress.step, progress.words, len(state.optimizer.state)) == (0, 0, 0)
    # None of the batches is lost.
    n = N_STEPS * n_parts + 2
    for (batch, position), (same, same_position) in zip(
        islice(batches, n), islice(run.corpus.batches(CorpusPosition()), n), strict=True
    ):
        assert same_batches(batch, same)
        assert position == same_position


def test_it_is_printed_before_the_first_step(
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


def test_its_description() -> None:
    estimate = Profile(seconds=0.5, bytes=900 * 2**20)
    assert estimate.describe(7200, 3600) == (
        "About 0:30:00 for an epoch of 3,600 steps, 1:00:00 for 7,200 steps, 900 MB of memory"
    )
    assert Profile(2.0, None).describe(30, None) == "About 0:01:00 for 30 steps"
