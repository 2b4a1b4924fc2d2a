"""Several processes, started by torchrun, on the CPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import distributed

from spacy_elmo.pretraining.checkpoint import CHECKPOINT, read_checkpoint
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.log import read_log
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.weights.native import save_bilm

from .helpers import make_config, make_model, same_weights, write_config

pytestmark = pytest.mark.skipif(
    not distributed.is_available() or sys.platform == "win32", reason="needs torchrun"
)

SECONDS = 180  # far more than it takes on an idle machine
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
CHANGES: dict[str, Any] = {
    "softmax.kind": "sampled",
    "softmax.n_candidates": 6,
    "corpus.buffer_words": 200,
    "training.learning_rate": 0.005,
    "training.log_every": 1,
}

# The trainer, and what happens in one of the processes as a step of the first start begins.
SCRIPT = """
import os, signal, sys, time
from spacy_elmo.cli import app
from spacy_elmo.pretraining import train
from spacy_elmo.pretraining.loss import BiLMLoss

before = train.learning_rate

def learning_rate(settings, progress):
    first_start = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if os.environ["RANK"] == "1" and progress.step == 7 and first_start:
        {what}
    return before(settings, progress)

train.learning_rate = learning_rate
app(sys.argv[1:], standalone_mode=False)
"""


def a_run(
    paths: tuple[Path, Path], more: dict[str, Any] | None = None, **changes: Any
) -> PretrainConfig:
    training = {f"training.{name}": value for name, value in changes.items()}
    return make_config(*paths, {**CHANGES, **training, **(more or {})})


def start(config: PretrainConfig, out: Path, *, restarts: int = 0, what: str = "") -> Any:
    """Two processes, in the second of which something happens."""
    file = write_config(out.with_name(f"{out.name}.cfg"), config)
    program = ["-m", "spacy", "elmo"]
    if what:
        script = out.with_name(f"{out.name}.py")
        script.write_text(SCRIPT.format(what=what), encoding="utf-8")
        program = [str(script)]
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        "--max-restarts", str(restarts), "--monitor-interval", "0.1",
        *program, "pretrain", str(file), str(out), *(["--resume"] if restarts else []),
    ]  # fmt: skip
    return subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for the end, and give what was said."""
    try:
        return " ".join(process.communicate(timeout=SECONDS)[0].split())  # lines are broken
    finally:
        if process.poll() is None:
            process.terminate()  # it ends the others


def torchrun(*arguments: Any, **settings: Any) -> tuple[int, str]:
    process = start(*arguments, **settings)
    said = finish(process)
    return process.returncode, said


def losses_of(out: Path) -> list[float]:
    return [entry["loss"] for entry in read_log(out / "log.jsonl") if "loss" in entry]


def assert_close(one: Path, other: Path) -> None:
    for name in ("weights.safetensors", "head.safetensors"):
        a, b = load_file(one / "model-last" / name), load_file(other / "model-last" / name)
        for key in a:
            torch.testing.assert_close(a[key], b[key], rtol=1e-4, atol=1e-4)


def test_two_processes_learn_what_one_does(paths, tmp_path) -> None:
    """Also of batches of one sentence, of which one process gets none; and though the biLM does
    not learn from the beginning."""
    (tmp_path / "start").mkdir()
    save_bilm(make_model(1)[0], tmp_path / "start")
    changes = {"dropout": 0.0, "head_first": 5}
    config = a_run(paths, {"paths.weights": str(tmp_path / "start")}, **changes)
    code, said = torchrun(config, tmp_path / "two")
    assert code == 0, said
    assert said.count("step 20: perplexity") == 1
    assert "; cpu, processes: 2, threads: 1" in said
    pretrain(config, tmp_path / "one", quiet=True)
    np.testing.assert_allclose(losses_of(tmp_path / "two"), losses_of(tmp_path / "one"), rtol=1e-4)
    assert_close(tmp_path / "one", tmp_path / "two")
    one, two = (read_checkpoint(tmp_path / name / CHECKPOINT)[0] for name in ("one", "two"))
    assert (one.position, one.words) == (two.position, two.words)


@pytest.mark.slow
def test_a_lost_process_loses_nothing(paths, tmp_path) -> None:
    config = a_run(paths, dropout=0.2, checkpoint_seconds=0)
    code, said = torchrun(config, tmp_path / "whole")
    assert code == 0, said
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    code, said = torchrun(config, tmp_path / "killed", restarts=2, what=kill)
    assert code == 0, said
    assert said.count("Resumed after step 7 ") == 1
    for name in (CHECKPOINT, "model-last/weights.safetensors", "model-best/head.safetensors"):
        assert same_weights(tmp_path / "whole" / name, tmp_path / "killed" / name)
    assert losses_of(tmp_path / "whole") == losses_of(tmp_path / "killed")


def test_a_signal_ends_all_after_the_same_step(paths, tmp_path) -> None:
    config, out = a_run(paths, dropout=0.0, max_steps=1000, eval_every=100), tmp_path / "out"
    process = start(config, out)
    deadline = time.monotonic() + SECONDS
    while len(read_log(out / "log.jsonl")) < 10 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said = finish(process)
    step = read_checkpoint(out / CHECKPOINT)[0].step
    assert 10 <= step < 1000, said
    assert f"Stopped after step {step:,}; resume with --resume" in said
    assert said.count("Stopping after the current step") == 1
    assert read_log(out / "log.jsonl")[-1]["step"] == step
    shorter = a_run(paths, dropout=0.0, max_steps=step + 5, eval_every=100, decay_steps=0)
    assert pretrain(shorter, out, resume=True, quiet=True).step == step + 5


def test_an_error_in_one_process_ends_all(paths, tmp_path) -> None:
    code, said = torchrun(a_run(paths), tmp_path / "out", what='raise OSError("the disk is gone")')
    assert code == 1
    assert said.count("the disk is gone") == 1, said


@pytest.mark.slow
def test_a_loss_that_is_not_finite_in_one_process(paths, tmp_path) -> None:
    what = "real = BiLMLoss.forward; BiLMLoss.forward = lambda *given: real(*given) * float('nan')"
    code, said = torchrun(a_run(paths), tmp_path / "out", what=what)
    assert code == 1
    assert said.count("not finite at step 8") == 1
