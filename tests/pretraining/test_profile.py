"""Time and memory of a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spacy_elmo.pretraining.run.log import describe_cost
from spacy_elmo.pretraining.train import pretrain

from .helpers import SENTENCES, make_config, prose, write_text


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_text(tmp_path / "text.txt", (prose() + SENTENCES) * 5)


def test_it_is_printed_once_and_changes_nothing(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = {"training.state": "carried", "model.initial_state": "warm"}
    config = make_config(text, text, changes)
    pretrain(config, tmp_path / "loud")
    printed = capsys.readouterr().err
    found = re.findall(
        r"About 0:00:\d\d for an epoch of \d+ steps, 0:00:\d\d for 20 steps, [\d,]+ MB of memory",
        printed,
    )
    assert len(found) == 1
    assert printed.index("About") < printed.index("step 20 of 20")
    pretrain(config, tmp_path / "quiet", quiet=True)
    assert capsys.readouterr().err == ""
    for name in ("weights", "head"):
        one, other = (
            (tmp_path / run / "model-last" / f"{name}.safetensors").read_bytes()
            for run in ("loud", "quiet")
        )
        assert one == other


def test_its_description() -> None:
    assert describe_cost([9.0, 0.5, 0.5], 900 * 2**20, 7200, 3600) == (
        "About 0:30:00 for an epoch of 3,600 steps, 1:00:00 for 7,200 steps, 900 MB of memory"
    )
    assert describe_cost([9.0, 2.0, 2.0], None, 30, None) == "About 0:01:00 for 30 steps"
