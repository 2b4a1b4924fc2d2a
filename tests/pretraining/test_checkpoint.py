from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from spacy_elmo.pretraining.data.corpus import CorpusPosition
from spacy_elmo.pretraining.run import machine
from spacy_elmo.pretraining.run.checkpoint import (
    CHECKPOINT,
    TrainingProgress,
    check_resumable,
    load_checkpoint,
    read_progress,
    save_checkpoint,
)
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.util.files import locked
from spacy_elmo.weights.layout import VOCAB
from spacy_elmo.weights.native import write_tensors

from .helpers import make_config, prose, write_text

CPU = torch.device("cpu")
PROGRESS = TrainingProgress(
    step=7, position=CorpusPosition(1, 2, 3, 4), words=99, seconds=1.5, best=12.25
)


def make(seed: int, size: int = 3) -> tuple[dict[str, torch.nn.Module], torch.optim.Adam]:
    torch.manual_seed(seed)
    modules: dict[str, torch.nn.Module] = {
        "one": torch.nn.Linear(size, 2),
        "two": torch.nn.Linear(2, 1),
    }
    parameters = [p for module in modules.values() for p in module.parameters()]
    return modules, torch.optim.Adam(parameters, lr=0.1, betas=(0.9, 0.99), fused=True)


def train(modules: dict[str, torch.nn.Module], optimizer: torch.optim.Adam) -> torch.Tensor:
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    loss = modules["two"](modules["one"](x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    modules, optimizer = make(0)
    train(modules, optimizer)
    file = tmp_path / "checkpoint.safetensors"
    save_checkpoint(file, PROGRESS, make_config(), modules, optimizer)
    return file


def test_progress_and_config_are_read_as_they_were_written(path: Path) -> None:
    progress, config = read_progress(path)
    assert progress == PROGRESS
    assert config == make_config()


def test_training_goes_on_as_if_it_had_not_stopped(path: Path) -> None:
    modules, optimizer = make(0)
    others, other_optimizer = make(1)
    train(modules, optimizer)
    load_checkpoint(path, others, other_optimizer, CPU)
    for _ in range(3):
        assert torch.equal(train(modules, optimizer), train(others, other_optimizer))


def test_a_failure_leaves_the_checkpoint_before(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(tensors: Any, temporary: Path, metadata: Any) -> None:
        temporary.write_bytes(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr("spacy_elmo.pretraining.run.checkpoint.write_tensors", fail)
    modules, optimizer = make(1)
    with pytest.raises(OSError, match="the disk is full"):
        save_checkpoint(path, TrainingProgress(), make_config(), modules, optimizer)
    assert list(path.parent.iterdir()) == [path]
    assert read_progress(path)[0] == PROGRESS


def test_a_checkpoint_that_does_not_fit_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match=r"one: tensor 'weight' has the shape \(2, 3\)"):
        modules, optimizer = make(0, size=4)
        load_checkpoint(path, modules, optimizer, CPU)
    modules, optimizer = make(0)
    with pytest.raises(ValueError, match=r"three does not fit its config: missing .*bias"):
        load_checkpoint(path, {"three": modules["one"]}, optimizer, CPU)


def test_a_missing_or_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(ValueError, match=r"There is no checkpoint .*checkpoint\.safetensors"):
        read_progress(path)
    path.write_bytes(b"damaged")
    with pytest.raises(ValueError, match=r"Cannot read the checkpoint .*checkpoint\.safetensors"):
        read_progress(path)
    with pytest.raises(ValueError, match="Cannot read the checkpoint"):
        load_checkpoint(path, *make(0), CPU)


def check(changes: dict[str, Any]) -> list[str]:
    said: list[str] = []
    check_resumable(make_config(), make_config(changes=changes), said.append)
    return said


def test_what_may_change_is_told() -> None:
    assert check({}) == []
    assert check({"training.learning_rate": 0.5, "paths.dev": "new"}) == [
        "Changed since the checkpoint: [paths] dev: None → 'new'",
        "Changed since the checkpoint: [training] learning_rate: 0.02 → 0.5",
    ]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("model.dim", 20, r"\[model\] dim: 16 → 20"),
        ("corpus.max_words", 20, r"\[corpus\] max_words: 100 → 20"),
        ("training.seed", 1, r"\[training\] seed: 0 → 1"),
        ("training.batch_words", 10, r"\[training\] batch_words: 40 → 10"),
        ("training.head_first", 9, r"\[training\] head_first: 500 → 9"),
        ("vocab.min_count", 7, r"\[vocab\] min_count: \d → 7"),
    ],
)
def test_what_may_not_change_is_refused(name: str, value: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"Cannot resume, .*{message}"):
        check({name: value})


def test_the_steps_of_an_epoch_may_not_change_where_epochs_are_counted() -> None:
    """Twice as many batches a step would end a run of half its steps at once."""
    said = check({"training.accumulate_gradient": 2})
    assert said == ["Changed since the checkpoint: [training] accumulate_gradient: 1 → 2"]
    with pytest.raises(
        ValueError, match=r"Cannot resume, .*: \[training\] accumulate_gradient: 1 → 2"
    ):
        check({"training.accumulate_gradient": 2, "training.max_epochs": 1})


def test_a_checkpoint_from_before_a_setting_existed_had_its_default(path: Path) -> None:
    config = make_config().to_dict()
    del config["corpus"]["buffer_words"], config["training"]["eval_words"]
    write_tensors({}, path, {"progress": '{"position": {}}', "config": json.dumps(config)})
    assert read_progress(path) == (TrainingProgress(), make_config())


def test_the_last_few_are_kept_and_can_be_gone_back_to(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt", prose() * 4)
    changes = {"training.checkpoint_seconds": 0, "training.keep_checkpoints": 3}
    config, out = make_config(text, text, changes), tmp_path / "out"
    pretrain(config, out, quiet=True)
    kept = sorted(path.name for path in out.glob("checkpoint-*"))
    assert kept == [f"checkpoint-{step:09d}.safetensors" for step in (18, 19, 20)]
    expected = (out / "model-last" / "weights.safetensors").read_bytes()
    last = (out / kept[2]).read_bytes()
    shutil.copyfile(out / kept[0], out / CHECKPOINT)
    assert (out / kept[2]).read_bytes() == last  # a file of its own
    stopped = make_config(text, text, {**changes, "training.max_steps": 19})
    pretrain(stopped, out, resume=True, quiet=True)
    # What came after is of another future now.
    assert sorted(path.name for path in out.glob("checkpoint-*")) == kept[:2]
    shutil.copyfile(out / kept[0], out / CHECKPOINT)
    progress = pretrain(config, out, resume=True, quiet=True)
    assert progress.step == 20
    assert (out / "model-last" / "weights.safetensors").read_bytes() == expected
    assert sorted(path.name for path in out.glob("checkpoint-*")) == kept
    (out / kept[2]).unlink()  # as if the process had been killed before it was copied
    longer = make_config(text, text, {**changes, "training.max_steps": 21})
    pretrain(longer, out, resume=True, quiet=True)
    assert read_progress(out / kept[2])[0].step == 20
    fewer = make_config(text, text, {"training.max_steps": 22})
    pretrain(fewer, out, resume=True, quiet=True)
    assert not list(out.glob("checkpoint-*"))
    assert read_progress(out / CHECKPOINT)[0].step == 22


@pytest.mark.skipif(os.name == "nt", reason="nothing is locked on Windows")
def test_only_one_process_trains_in_a_directory(tmp_path: Path) -> None:
    text, out = write_text(tmp_path / "text.txt", prose()), tmp_path / "run"
    config = make_config(text, text)
    pretrain(make_config(text, text, {"training.max_steps": 8}), out, quiet=True)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with (
        locked(out / VOCAB),
        pytest.raises(ValueError, match=r"Another process trains in '.*run': wait for it"),
    ):
        pretrain(config, out, resume=True, quiet=True)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert pretrain(config, out, resume=True, quiet=True).step == 20


@pytest.mark.parametrize("is_resumed", [False, True])
def test_another_process_has_trained_since_the_run_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_resumed: bool
) -> None:
    text, out = write_text(tmp_path / "text.txt", prose()), tmp_path / "run"
    config = make_config(text, text)
    if is_resumed:
        pretrain(make_config(text, text, {"training.max_steps": 8}), out, quiet=True)
    keep = machine.keep_freed_memory  # called between reading and writing

    def train_meanwhile() -> None:
        monkeypatch.setattr(machine, "keep_freed_memory", keep)
        other = make_config(text, text, {"training.max_steps": 12})
        pretrain(other, out, resume=is_resumed, quiet=True)

    monkeypatch.setattr(machine, "keep_freed_memory", train_meanwhile)
    message = "trained further meanwhile" if is_resumed else "has the checkpoint of another run"
    with pytest.raises(ValueError, match=message):
        pretrain(config, out, resume=is_resumed, quiet=True)
    assert read_progress(out / CHECKPOINT)[0].step == 12
