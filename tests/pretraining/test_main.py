"""``python -m spacy_elmo.pretraining``, as its own process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spacy_elmo.pretraining.__main__ import main
from spacy_elmo.pretraining.config import read_config
from spacy_elmo.pretraining.run.checkpoint import CHECKPOINT, read_progress
from spacy_elmo.pretraining.run.log import read_log
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.util.files import write_json

from .helpers import SENTENCES, make_config, prose, same_weights, write_text

# What is not there on a machine with PyTorch, NumPy, safetensors, pydantic and tqdm alone.
WITHOUT = """
import runpy, sys
for name in ("spacy", "thinc", "srsly", "typer", "click", "wasabi", "h5py"):
    sys.modules[name] = None
runpy.run_module("spacy_elmo.pretraining", run_name="__main__", alter_sys=True)
"""
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    train = write_text(tmp_path / "train.txt", prose() + SENTENCES)
    dev = write_text(tmp_path / "dev.txt", prose()[::3])
    changes = {
        "softmax.kind": "sampled",
        "softmax.n_candidates": 6,
        "training.dropout": 0.2,
        "training.max_steps": 300,
        "training.eval_every": 100,
        "training.log_every": 1,
    }
    path = tmp_path / "config.json"
    write_json(path, make_config(train, dev, changes).to_dict())
    return path


def test_every_module_imports_without_spacy() -> None:
    code = WITHOUT.partition("runpy.run_module")[0] + (
        "import importlib, pkgutil, spacy_elmo.bilm, spacy_elmo.lm, spacy_elmo.pretraining\n"
        "for package in (spacy_elmo.bilm, spacy_elmo.lm, spacy_elmo.pretraining):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(module.name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=ENVIRONMENT, timeout=120)


def test_without_spacy(config_path: Path, tmp_path: Path) -> None:
    result = subprocess.run(
        [
            sys.executable, "-c", WITHOUT, "--training.max_steps", "12", str(config_path),
            "--training.eval_words=20", str(tmp_path / "out"), "-g", "-1",
        ],
        capture_output=True, text=True, env=ENVIRONMENT, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert "step 1 of 12: loss " in result.stderr
    assert " words/s, 0:00:0" in result.stderr
    assert "step 12 of 12: loss " in result.stderr
    table = [line.split()[0] for line in result.stderr.splitlines()[-3:]]
    assert table == ["perplexity", "model-best", "model-last"]
    assert (tmp_path / "out" / "model-best" / "weights.safetensors").is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_loses_nothing(config_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "spacy_elmo.pretraining", str(config_path), str(out)]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            deadline = time.monotonic() + 60
            while len(read_log(out / "log.jsonl")) < 15:
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    step = read_progress(out / CHECKPOINT)[0].step
    assert 10 < step < 300
    assert f"Stopped after step {step}; resume with --resume" in said
    assert (out / "model-last" / "head.safetensors").is_file()
    assert read_log(out / "log.jsonl")[-1]["step"] == step

    config = read_config(config_path)
    pretrain(config, out, resume=True, quiet=True)
    pretrain(config, tmp_path / "whole", quiet=True)
    for name in (CHECKPOINT, "model-last/weights.safetensors", "model-best/head.safetensors"):
        assert same_weights(tmp_path / "whole" / name, out / name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--training.max_steps", "3"], "Error: Config: [training] max_steps is 3"),
        (["--training.steps", "3"], "Error: Config: [training] has unknown settings"),
        (["--gpu-id", "99"], "Error: There is no GPU 99"),
        (["--resume"], "Error: There is no checkpoint"),
    ],
)
def test_errors_are_one_line(
    config_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["pretraining", str(config_path), *arguments, str(out)])
    with pytest.raises(SystemExit) as exit_with:
        main()
    assert str(exit_with.value.code).startswith(message)
    assert "\n" not in str(exit_with.value.code)
    assert not out.exists()


def test_an_unknown_option_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pretraining", "config.json", "out", "--steps", "4"])
    with pytest.raises(SystemExit):
        main()
    assert "unrecognized arguments: --steps" in capsys.readouterr().err


def test_the_log_is_json(config_path: Path, tmp_path: Path) -> None:
    pretrain(read_config(config_path, {"training.max_steps": 7}), tmp_path / "out", quiet=True)
    for line in (tmp_path / "out" / "log.jsonl").read_text(encoding="utf-8").splitlines():
        assert json.loads(line)["step"] <= 7
