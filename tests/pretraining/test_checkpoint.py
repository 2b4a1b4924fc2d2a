from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_elmo.pretraining import machine
from spacy_elmo.pretraining.corpus import CorpusPosition
from spacy_elmo.pretraining.prepare import check_resumable
from spacy_elmo.pretraining.state import CHECKPOINT, Progress, State, read_checkpoint
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.pretraining.train_step import train_step
from spacy_elmo.util.files import locked
from spacy_elmo.weights.layout import VOCAB
from spacy_elmo.weights.tensors import write_tensors

from .helpers import make_block, make_config, make_vocab, prose, same_weights, write_text

WORDS = make_vocab(word for words in prose() for word in words)
BATCH = make_block(prose(), WORDS).batch(np.arange(10))
PROGRESS = Progress(position=CorpusPosition(1, 2, 3, 4), seconds=1.5, best=12.25)


def make_state(teacher_size: int = 0, **changes: Any) -> State:
    settings = {name.replace("__", "."): value for name, value in changes.items()}
    return State(make_config(changes=settings), len(WORDS), teacher_size=teacher_size)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The checkpoint of a state after a step."""
    state = make_state()
    state.progress = PROGRESS
    train_step(state, [BATCH], 0.1)
    state.save(tmp_path / CHECKPOINT, make_config())
    return tmp_path / CHECKPOINT


def test_training_goes_on_as_if_it_had_not_stopped(path: Path) -> None:
    progress, config = read_checkpoint(path)
    assert (progress, config) == (PROGRESS, make_config())
    states = [make_state(training__seed=7), make_state(training__seed=7)]
    states[0].load(path)
    states[0].save(path, config)
    states[1].load(path)
    for _ in range(3):
        one, other = (train_step(state, [BATCH], 0.1) for state in states)
        assert one == other
    for state, name in zip(states, "ab", strict=True):
        state.save(path.with_name(name), config)
    assert same_weights(path.with_name("a"), path.with_name("b"))


def test_a_failure_leaves_the_checkpoint_before(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(tensors: Any, temporary: Path, metadata: Any) -> None:
        temporary.write_bytes(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr("spacy_elmo.pretraining.state.write_tensors", fail)
    before = path.read_bytes()
    with pytest.raises(OSError, match="the disk is full"):
        make_state().save(path, make_config())
    assert (list(path.parent.iterdir()), path.read_bytes()) == ([path], before)


def test_a_checkpoint_that_does_not_fit_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match=r"checkpoint.*tensor 'bilm\..*' has the shape"):
        make_state(model__dim=24).load(path)
    with pytest.raises(ValueError, match=r"does not fit its config: missing .*teacher"):
        make_state(teacher_size=3).load(path)
    path.write_bytes(b"damaged")
    with pytest.raises(ValueError, match="Cannot read the checkpoint"):
        make_state().load(path)
    for file in (path, path.with_name("gone")):
        with pytest.raises(ValueError, match=f"Cannot read the checkpoint .*{file.name}"):
            read_checkpoint(file)


def check(tmp_path: Path, changes: dict[str, Any]) -> list[str]:
    said: list[str] = []
    check_resumable(make_config(), make_config(changes=changes), tmp_path, said.append)
    return said


def test_what_may_change_is_told(tmp_path: Path) -> None:
    assert check(tmp_path, {}) == []
    assert check(tmp_path, {"training.learning_rate": 0.5, "paths.dev": "new"}) == [
        "Changed since the checkpoint: [paths] dev: None → 'new'",
        "Changed since the checkpoint: [training] learning_rate: 0.02 → 0.5",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model.dim", 20), ("corpus.max_words", 20), ("training.seed", 1), ("vocab.min_count", 7),
        ("training.batch_words", 10), ("training.head_first", 9),
    ],
)  # fmt: skip
def test_what_may_not_change_is_refused(tmp_path: Path, name: str, value: int) -> None:
    section, setting = name.split(".")
    with pytest.raises(
        ValueError, match=rf"Cannot resume, .*\[{section}\] {setting}: \d+ → {value}"
    ):
        check(tmp_path, {name: value})


def test_the_steps_of_an_epoch_may_not_change_where_epochs_are_counted(tmp_path: Path) -> None:
    """Twice as many batches a step would end a run of half its steps at once."""
    said = check(tmp_path, {"training.accumulate_gradient": 2})
    assert said == ["Changed since the checkpoint: [training] accumulate_gradient: 1 → 2"]
    with pytest.raises(ValueError, match=r"Cannot resume, .*accumulate_gradient: 1 → 2"):
        check(tmp_path, {"training.accumulate_gradient": 2, "training.max_epochs": 1})


def test_a_checkpoint_from_before_a_setting_existed_had_its_default(path: Path) -> None:
    config = make_config().to_dict()
    del config["corpus"]["buffer_words"], config["training"]["eval_words"]
    write_tensors({}, path, {"progress": '{"position": {}}', "config": json.dumps(config)})
    assert read_checkpoint(path) == (Progress(), make_config())


def test_the_last_few_are_kept_and_can_be_gone_back_to(tmp_path: Path) -> None:
    text, out = write_text(tmp_path / "text.txt", prose() * 4), tmp_path / "out"

    def train(n_steps: int, n_kept: int = 3) -> list[str]:
        changes = {"training.checkpoint_seconds": 0, "training.keep_checkpoints": n_kept}
        config = make_config(text, text, {**changes, "training.max_steps": n_steps})
        progress = pretrain(config, out, resume=(out / CHECKPOINT).exists(), quiet=True)
        assert progress.step == n_steps == read_checkpoint(out / CHECKPOINT)[0].step
        return sorted(path.name for path in out.glob("checkpoint-*"))

    kept = train(20)
    assert kept == [f"checkpoint-{step:09d}.safetensors" for step in (18, 19, 20)]
    expected, last = (out / "model-last" / "weights.safetensors").read_bytes(), out / kept[2]
    before = last.read_bytes()
    shutil.copyfile(out / kept[0], out / CHECKPOINT)
    assert last.read_bytes() == before  # a file of its own
    assert train(19) == kept[:2]  # what came after is of another future now
    shutil.copyfile(out / kept[0], out / CHECKPOINT)
    assert train(20) == kept
    assert (out / "model-last" / "weights.safetensors").read_bytes() == expected
    last.unlink()  # as if the process had been killed before it was copied
    train(21)
    assert read_checkpoint(last)[0].step == 20
    assert train(22, n_kept=1) == []


@pytest.mark.skipif(os.name == "nt", reason="nothing is locked on Windows")
@pytest.mark.parametrize("is_resumed", [False, True])
def test_only_one_process_trains_in_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_resumed: bool
) -> None:
    """Neither while a run trains, nor if another one began after this one had looked."""
    text, out = write_text(tmp_path / "text.txt", prose()), tmp_path / "run"
    config = make_config(text, text)
    pretrain(make_config(text, text, {"training.max_steps": 8}), out, quiet=True)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with locked(out / VOCAB), pytest.raises(ValueError, match=r"Another process trains in '.*run'"):
        pretrain(config, out, resume=True, quiet=True)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    shutil.move(out, tmp_path / "other")

    def begin_meanwhile() -> None:
        shutil.move(tmp_path / "other", out)

    monkeypatch.setattr(
        machine, "keep_freed_memory", begin_meanwhile
    )  # between reading and writing
    with pytest.raises(ValueError, match="has the checkpoint of another run"):
        pretrain(config, out, resume=is_resumed, quiet=True)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
