"""Runs that start from a biLM: its own head, or a new one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.lm.head import load_head
from spacy_elmo.pretraining import train as loop
from spacy_elmo.pretraining.config import PretrainConfig, read_config
from spacy_elmo.pretraining.log import read_log
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.util.files import atomic_directory
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import Card
from spacy_elmo.weights.native import HEAD, save_bilm

from ..bilm.helpers import same_weights
from .helpers import (
    MODEL,
    SENTENCES,
    make_config,
    prose,
    refuses,
    stop_after,
    write_config,
    write_text,
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A biLM of some prose, with its head."""
    folder = tmp_path_factory.mktemp("trained")
    text = write_text(folder / "text.txt", prose() * 4)
    pretrain(make_config(text, text), folder / "out", quiet=True)
    return folder / "out" / "model-last"


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    return write_text(tmp_path / "animals.txt", SENTENCES * 10)


def going_on(text: Path, weights: Path, changes: dict[str, Any] | None = None) -> PretrainConfig:
    """A tiny run from a biLM, without a [model]."""
    config = make_config(text, text, {"paths.weights": str(weights), **(changes or {})})
    return replace(config, model=None)


def without_head(weights: Path, path: Path) -> Path:
    shutil.copytree(weights, path)
    (path / HEAD).unlink()
    (path / "vocab.txt").unlink()
    return path


def numbers(weights: Path) -> dict[str, torch.Tensor]:
    return load_bilm(str(weights)).state_dict()


@pytest.mark.parametrize("eval_words", [0, 20])
def test_it_starts_where_the_biLM_is(trained, tmp_path, capsys, eval_words) -> None:
    """What is measured before the first step is comparable to the evaluations that follow."""
    text = write_text(tmp_path / "text.txt", prose() * 4)  # as it was trained on
    changes = {"training.learning_rate": 1e-9, "training.eval_words": eval_words}
    pretrain(going_on(text, trained, changes), tmp_path / "out")
    assert "before: perplexity" in capsys.readouterr().err
    before, *steps = [e for e in read_log(tmp_path / "out" / "log.jsonl") if "mean" in e]
    assert before["step"] == 0 and before["mean"] == pytest.approx(steps[0]["mean"], rel=1e-4)
    if not eval_words:
        trained_to = read_log(trained.parent / "log.jsonl")[-1]["mean"]
        assert before["mean"] == pytest.approx(trained_to, rel=1e-4)
    same_text = before["mean"] == pytest.approx(steps[-1]["mean"], rel=1e-4)
    assert same_text == (eval_words == 0)  # the last one is of the whole text
    words = load_head(str(tmp_path / "out" / "model-last"))[1].words
    assert words == load_head(str(trained))[1].words


def test_a_new_head_learns_first(trained, animals, tmp_path, monkeypatch, capsys) -> None:
    """For half of the run at most, also of some minutes, whatever the settings say."""
    start = without_head(trained, tmp_path / "start")
    with monkeypatch.context() as patch:
        stop_after(patch, 10)
        pretrain(going_on(animals, start), tmp_path / "held")
    assert "has no head: a new one is trained first" in capsys.readouterr().err
    assert same_weights(load_bilm(start), load_bilm(tmp_path / "held" / "model-last"))
    _, vocab = load_head(str(tmp_path / "held" / "model-last"))
    assert "owls" in vocab.words
    monkeypatch.setattr(loop, "N_STEPS", 3)
    monkeypatch.setattr(loop, "N_FIRST", 0)
    monkeypatch.setattr(loop.time, "monotonic", iter(range(10**6)).__next__)
    for name, changes in (("both", {}), ("fitted", {"training.minutes": 0.1})):
        progress = pretrain(going_on(animals, start, changes), tmp_path / name, quiet=True)
        assert progress.head_first == progress.step // 2
        after = numbers(tmp_path / name / "model-last")
        assert not any(torch.equal(after[name], value) for name, value in numbers(start).items())


def test_steps_that_are_timed_train_all(trained, animals, tmp_path, monkeypatch) -> None:
    """Also with a new head: later steps take as long."""
    start = without_head(trained, tmp_path / "start")
    stop_after(monkeypatch, 3)
    pretrain(going_on(animals, start, {"training.minutes": 1}), tmp_path / "out", quiet=True)
    after = numbers(tmp_path / "out" / "model-last")
    assert not any(torch.equal(after[name], value) for name, value in numbers(start).items())


@pytest.mark.parametrize("changes", [{"head_first": 0}, {"max_steps": 1}])
def test_a_new_head_may_have_no_steps_of_its_own(trained, animals, tmp_path, changes) -> None:
    """Of the settings, or because a short run has none for it. The old head is no part of it."""
    settings = {f"training.{name}": value for name, value in changes.items()}
    settings = {"training.head_first": 1, "training.learning_rate": 1e-9, **settings}
    old, vocab = load_head(str(trained))
    words = [*vocab.words[:3], *reversed(vocab.words[3:])]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    for name, start in (("other", trained), ("none", without_head(trained, tmp_path / "start"))):
        settings["paths.vocab"] = str(tmp_path / "vocab.txt")
        progress = pretrain(going_on(animals, start, settings), tmp_path / name, quiet=True)
        assert progress.head_first == 0
        new, vocab = load_head(str(tmp_path / name / "model-last"))
        assert vocab.words == words
        assert not torch.allclose(new.weight, old.weight, atol=1e-3)


def test_a_model_of_another_shape(trained, animals, tmp_path) -> None:
    other = make_config(animals, animals, {"model.dim": 24, "paths.weights": str(trained)})
    refuses(r"\[model\] differs from the weights .* Remove the", other, tmp_path / "out")
    refuses(r"no \[model\]", replace(make_config(animals, animals), model=None), tmp_path / "out")
    same = make_config(animals, animals, {"paths.weights": str(trained)})
    assert pretrain(same, tmp_path / "out", quiet=True).step == 20


@pytest.mark.parametrize("has_head", [True, False])
def test_resumed_to_the_bit_without_what_it_was_started_from(
    trained, animals, tmp_path, monkeypatch, has_head
) -> None:
    """Through the files, as the commands do it; and with other weights in the config by then."""
    start = without_head(trained, tmp_path / "start")
    if has_head:
        shutil.copytree(trained, start, dirs_exist_ok=True)
    out = tmp_path / "parts"
    config = going_on(animals, start, {"training.head_first": 10, "training.dropout": 0.2})
    pretrain(config, tmp_path / "whole", quiet=True)
    stop_after(monkeypatch, 7)
    pretrain(config, out, quiet=True)
    monkeypatch.undo()
    shutil.rmtree(start)
    changed = replace(config, paths=replace(config.paths, weights="en_sm"))
    resumed = read_config(write_config(tmp_path / "config.cfg", changed))
    assert resumed.model is None
    pretrain(resumed, out, resume=True, quiet=True)
    whole, parts = (load_bilm(tmp_path / name / "model-last") for name in ("whole", "parts"))
    assert same_weights(whole, parts)
    assert read_config(out / "pretrain.cfg").paths.weights == str(start)


def test_licence_and_language_go_on(animals, tmp_path) -> None:
    card = Card(
        {"name": "tiny", "lang": "nl", "license": "CC BY 4.0", "sources": [{"name": "A"}]},
        {"LICENSE": "Text.", "README.md": "# tiny"},
    )
    torch.manual_seed(0)
    model = BiLM(BiLMConfig.from_dict(MODEL))
    with atomic_directory(tmp_path / "start") as directory:
        save_bilm(model, directory, card)
    pretrain(going_on(animals, tmp_path / "start"), tmp_path / "out", quiet=True)
    found = find_weights(str(tmp_path / "out" / "model-best")).card()
    assert found.meta == {
        "license": "CC BY 4.0", "sources": [{"name": "A"}], "started_from": "tiny", "lang": "nl"
    }  # fmt: skip
    assert found.documents == {"LICENSE": "Text."}
