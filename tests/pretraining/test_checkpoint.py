from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_elmo.pretraining import train as loop
from spacy_elmo.pretraining.checkpoint import CHECKPOINT, Progress, State, read_checkpoint
from spacy_elmo.pretraining.corpus import CorpusPosition, make_batch
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.pretraining.train_step import train_step
from spacy_elmo.util.files import locked
from spacy_elmo.weights.layout import VOCAB

from .helpers import contents, make_block, make_config, make_vocab, prose, write_text

WORDS = make_vocab(word for words in prose() for word in words)
BATCH = make_batch(make_block(prose(), WORDS), np.arange(10))
PROGRESS = Progress(position=CorpusPosition(1, 2, 3, 4), seconds=1.5, best=12.25)


def make_state(teacher_size: int = 0, **changes: Any) -> State:
    settings = {name.replace("__", "."): value for name, value in changes.items()}
    return State(make_config(changes=settings), len(WORDS), teacher_size=teacher_size)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The checkpoint of a state after a step."""
    state = make_state()
    state.progress = PROGRESS
    train_step(state, make_config().training, BATCH, 0.1)
    state.save(tmp_path / CHECKPOINT, make_config())
    return tmp_path / CHECKPOINT


def test_a_checkpoint_that_does_not_fit_is_refused(path) -> None:
    with pytest.raises(ValueError, match=r"checkpoint.*tensor 'model\..*' has the shape"):
        make_state(model__dim=24).load(path)
    with pytest.raises(ValueError, match=r"does not fit its config: missing .*student"):
        make_state(teacher_size=3).load(path)
    path.write_bytes(b"damaged")
    with pytest.raises(ValueError, match="Cannot read the checkpoint"):
        make_state().load(path)
    for file in (path, path.with_name("gone")):
        with pytest.raises(ValueError, match=f"Cannot read the checkpoint .*{file.name}"):
            read_checkpoint(file)


@pytest.mark.skipif(os.name == "nt", reason="nothing is locked on Windows")
def test_only_one_process_trains_in_a_directory(tmp_path, monkeypatch) -> None:
    """Neither while a run trains, nor if another one begins after this one has looked."""
    text, out = write_text(tmp_path / "text.txt", prose()), tmp_path / "run"
    config = make_config(text, text)
    pretrain(make_config(text, text, {"training.max_steps": 8}), out, quiet=True)
    before = contents(out)
    with locked(out / VOCAB), pytest.raises(ValueError, match=r"Another process trains in '.*run'"):
        pretrain(config, out, resume=True, quiet=True)
    assert contents(out) == before
    real = loop.prepare

    def begin_meanwhile(*given: Any) -> Any:
        shutil.copytree(tmp_path / "other", out, dirs_exist_ok=True)
        return real(*given)

    monkeypatch.setattr(loop, "prepare", begin_meanwhile)
    shutil.move(out, tmp_path / "other")
    for resume in (False, True):
        with pytest.raises(ValueError, match=r"checkpoint\.safetensors, .* overwrite them"):
            pretrain(config, out, resume=resume, quiet=True)
        assert contents(out) == before
        shutil.rmtree(out)
    monkeypatch.undo()
    out.mkdir()
    (out / VOCAB).touch()  # all that the other one has written so far
    with locked(out / VOCAB), pytest.raises(ValueError, match="Another process trains"):
        pretrain(config, out, resume=True, quiet=True)
    assert list(out.iterdir()) == [out / VOCAB]
