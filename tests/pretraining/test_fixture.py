"""A run begun by version 0.1, resumed by the code of today."""

from __future__ import annotations

import shutil
from pathlib import Path
from runpy import run_path

import pytest
import torch
from safetensors.torch import load_file

from spacy_elmo.pretraining.config_file import read_config
from spacy_elmo.pretraining.run.log import read_log
from spacy_elmo.pretraining.train import pretrain

FIXTURE = Path(__file__).parents[1] / "fixtures" / "pretraining_run_0.1"


def test_a_run_of_0_1_is_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with the weights that 0.1 itself ended with, whatever the version of PyTorch."""
    dropout = run_path(str(FIXTURE / "dropout.py"))["dropout"]
    monkeypatch.setattr("torch.nn.functional.dropout", dropout)
    out = tmp_path / "run"
    shutil.copytree(FIXTURE / "run", out)
    texts = [f"--paths.{name}={FIXTURE / name}.txt" for name in ("train", "dev")]
    progress = pretrain(read_config(out / "config.cfg", texts, out), out, resume=True)
    assert "Resumed after step 7 (149 words)" in capsys.readouterr().err
    assert (progress.step, progress.words) == (16, 341)
    for name in ("weights.safetensors", "head.safetensors"):
        expected, found = (
            load_file(folder / name) for folder in (FIXTURE / "expected", out / "model-last")
        )
        assert expected.keys() == found.keys()
        for key, tensor in expected.items():
            # Another order of additions changes the last bits (5e-7 from 0.1 to here, with PyTorch
            # 2.4, 2.13 and 2.15 alike); another mask, batch or candidate changes them by 1e-2.
            torch.testing.assert_close(found[key], tensor, rtol=1e-5, atol=2e-6)
    last = read_log(out / "log.jsonl")[-1]
    assert (last["step"], last["model"]) == (16, "model-last")
    assert last["mean"] == pytest.approx(23.744632171138395, rel=1e-5)
