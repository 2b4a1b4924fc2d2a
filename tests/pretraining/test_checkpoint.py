from __future__ import annotations

import os
import shutil
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from spacy_elmo.pretraining import train as loop
from spacy_elmo.pretraining.checkpoint import CHECKPOINT, State, read_checkpoint
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.util.files import locked
from spacy_elmo.weights.layout import VOCAB
from spacy_elmo.weights.tensors import write_tensors

from .helpers import contents, make_config, prose, refuses, write_text


def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path) -> None:
    path, state = tmp_path / CHECKPOINT, State(make_config(), 5)
    state.save(path, make_config())
    with pytest.raises(ValueError, match=r"checkpoint.*tensor 'model\..*' has the shape"):
        State(make_config(changes={"model.dim": 24}), 5).load(path)
    with pytest.raises(ValueError, match=r"does not fit its config: missing .*student"):
        State(make_config(), 5, teacher_size=3).load(path)
    write_tensors(load_file(path) | {"optimizer.0.step": torch.tensor(1.0)}, path)
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors .*optimizer\.0\.exp_avg"):
        state.load(path)
    path.write_bytes(b"damaged")
    with pytest.raises(ValueError, match="Cannot read the checkpoint"):
        state.load(path)
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
    with locked(out / VOCAB):
        refuses(r"Another process trains in '.*run'", config, out, resume=True)
    assert contents(out) == before
    real = loop.prepare

    def begin_meanwhile(*given: Any) -> Any:
        shutil.copytree(tmp_path / "other", out, dirs_exist_ok=True)
        return real(*given)

    monkeypatch.setattr(loop, "prepare", begin_meanwhile)
    shutil.move(out, tmp_path / "other")
    for resume in (False, True):
        refuses(r"checkpoint\.safetensors, .* overwrite them", config, out, resume=resume)
        assert contents(out) == before
        shutil.rmtree(out)
    monkeypatch.undo()
    out.mkdir()
    (out / VOCAB).touch()  # all that the other one has written so far
    with locked(out / VOCAB):
        refuses("Another process trains", config, out, resume=True)
    assert list(out.iterdir()) == [out / VOCAB]
