"""Runs whose biLM is on top of a table of word vectors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from spacy_elmo.bilm.static_vectors import WordTable
from spacy_elmo.lm.encoded_sentences import EncodedSentences
from spacy_elmo.lm.language_model import LanguageModel
from spacy_elmo.pretraining import word_table
from spacy_elmo.pretraining.config import PretrainConfig, read_config
from spacy_elmo.pretraining.log import read_log
from spacy_elmo.pretraining.state import CHECKPOINT
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.pretraining.word_table import TABLE, read_table
from spacy_elmo.weights.find import load_bilm

from .helpers import (
    BEST_PERPLEXITY,
    SENTENCES,
    SETTINGS,
    make_vocab,
    prose,
    same_batches,
    same_weights,
    stop_after,
    write_text,
)

WORDS = list(dict.fromkeys(word for words in [*SENTENCES, *prose()] for word in words))[:-3]
FILES = [CHECKPOINT, "log.jsonl", "model-best", "model-last", "pretrain.cfg", TABLE, "vocab.txt"]
MODEL = {"token_encoder": "vectors", "projection_dim": 8, "dim": 16, "n_layers": 2}


TABLES: dict[str, WordTable] = {}  # of pipelines, by name


@pytest.fixture(autouse=True)
def no_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_table, "read_vectors", lambda name, notify: TABLES[name])


def make_table(seed: int = 0) -> WordTable:
    """Every two words share a row."""
    rows = np.arange(len(WORDS)) // 2
    vectors = np.random.default_rng(seed).normal(size=(rows[-1] + 1, 6))
    return WordTable(WORDS, rows, vectors)


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    train = write_text(tmp_path / "train.txt", prose() + SENTENCES)
    return train, write_text(tmp_path / "dev.txt", prose()[::3] + [["quite", "new", "."]])


def make_config(
    paths: tuple[Path, Path],
    model: dict[str, Any] | None = None,
    table: WordTable | None = None,
    **changes: Any,
) -> PretrainConfig:
    """Twenty steps with all that is random; `changes` are settings of any section but [model].
    The table is that of a pipeline."""
    settings = {name: dict(section) for name, section in SETTINGS.items()}
    settings["model"] = MODEL if model is None else model
    settings["paths"] = {"train": str(paths[0]), "dev": str(paths[1])}
    settings["softmax"] = {"kind": "sampled", "n_candidates": 6}
    settings["training"]["dropout"] = 0.2
    for name, value in changes.items():
        settings["paths" if name in ("weights", "vectors") else "training"][name] = value
    if table is not None:
        settings["paths"]["vectors"] = "given"
        TABLES["given"] = table
    return PretrainConfig.from_dict({k: v for k, v in settings.items() if v})


def table_of(path: Path) -> WordTable:
    return load_bilm(path).word_vectors.contents()


def same_table(one: WordTable, other: WordTable) -> bool:
    assert (one.words, one.rows.tolist()) == (other.words, other.rows.tolist())
    return bool((one.vectors == other.vectors).all())


def test_a_text_is_learned(tmp_path: Path) -> None:
    """Down to its entropy, though two animals, and two sounds, have one vector each."""
    words = [word for sentence in SENTENCES for word in sentence]
    table = WordTable(list(dict.fromkeys(words)), np.arange(9), np.eye(9))
    train = write_text(tmp_path / "train.txt", SENTENCES * 10)
    changes = {"max_steps": 500, "decay_steps": 250, "eval_every": 50, "dropout": 0.05}
    config = make_config((train, train), table=table, **changes)
    pretrain(config, tmp_path / "out", quiet=True)
    [*_, last] = [entry for entry in read_log(tmp_path / "out" / "log.jsonl") if "mean" in entry]
    assert BEST_PERPLEXITY - 1e-3 < last["mean"] < 1.05 * BEST_PERPLEXITY


def test_what_a_run_says_and_leaves(
    paths: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    pretrain(make_config(paths, table=make_table()), out)
    said = capsys.readouterr().err
    assert f"{len(WORDS)} words with {-(-len(WORDS) // 2)} 6-dimensional vectors, frozen" in said
    words = [word for sentence in [*prose(), *SENTENCES] for word in sentence]
    missing = sum(word not in WORDS for word in words)
    assert f"train: {len(words)} words in 14 sentences" in said
    assert missing and f"{missing / len(words):.2%} without a vector" in said
    assert "bytes" not in said
    assert sorted(path.name for path in out.iterdir()) == FILES
    config = read_config(out / "pretrain.cfg")
    assert (config.model.n_words, config.model.vector_dim) == (len(WORDS), 6)
    assert config.model == load_bilm(out / "model-last").config


@pytest.mark.parametrize("learns", [False, True])
def test_whether_the_table_learns(paths: tuple[Path, Path], tmp_path: Path, learns: bool) -> None:
    out, table = tmp_path / "out", make_table()
    pretrain(make_config(paths, table=table, train_vectors=learns), out, quiet=True)
    assert same_table(table, make_table())
    assert same_table(read_table(out / TABLE), table)
    assert same_table(table_of(out / "model-last"), table) == (not learns)
    in_checkpoint = {name for name in load_file(out / CHECKPOINT) if "word_vectors" in name}
    expected = {"special", "projection.weight", "projection.bias"} | (
        {"table"} if learns else set()
    )
    assert in_checkpoint == {f"bilm.word_vectors.{name}" for name in expected}
    moments = [t.shape for n, t in load_file(out / CHECKPOINT).items() if n.endswith(".exp_avg")]
    assert (table.vectors.shape in moments) == learns


def test_what_always_learns(paths: tuple[Path, Path], tmp_path: Path) -> None:
    models = []
    for steps in (8, 20):
        out = tmp_path / str(steps)
        pretrain(make_config(paths, table=make_table(), max_steps=steps), out, quiet=True)
        models.append(dict(load_bilm(out / "model-last").named_parameters()))
    for name, parameter in models[0].items():
        assert not torch.equal(parameter, models[1][name]), name
    changed = models[0]["word_vectors.special"] != models[1]["word_vectors.special"]
    assert changed.any(dim=1).all()  # <S>, </S> and the unknown word


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("state", ["zero", "carried"])
def test_resuming_changes_nothing(
    paths: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    learns: bool,
    state: str,
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    model = {**MODEL, "initial_state": "warm" if state == "carried" else "zero"}
    changes = {"train_vectors": learns, "state": state, "n_streams": 4}
    config = make_config(paths, model, make_table(), **changes)
    pretrain(config, whole, quiet=True)
    stop_after(monkeypatch, 13)
    pretrain(config, broken, quiet=True)
    monkeypatch.undo()
    TABLES.clear()  # nothing but the run's own directory is needed
    without = make_config(paths, model, **changes)
    for again in (config, without):
        assert pretrain(again, broken, resume=True, quiet=True).step == 20
    for name in [CHECKPOINT, "model-last/weights.safetensors", "model-best/head.safetensors"]:
        assert same_weights(whole / name, broken / name)


def test_resuming_with_another_kind(paths: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    pretrain(make_config(paths, table=make_table()), out, quiet=True)
    for config, said in [
        (make_config(paths, train_vectors=True), "train_vectors: False → True"),
        (make_config(paths, SETTINGS["model"]), "[model] token_encoder: 'vectors' → None"),
        (make_config(paths, {**MODEL, "n_words": 5}), "[model] n_words is 5, but the word vectors"),
    ]:
        with pytest.raises(ValueError) as error:
            pretrain(config, out, resume=True, quiet=True)
        assert said in str(error.value)
    (out / TABLE).unlink()
    with pytest.raises(ValueError, match=rf"Cannot read the word vectors .*{TABLE}"):
        pretrain(make_config(paths), out, resume=True, quiet=True)


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("new_head", [False, True])
def test_going_on_from_another(
    paths: tuple[Path, Path], tmp_path: Path, learns: bool, new_head: bool
) -> None:
    """Its table goes on, and stays as it is while only the head learns."""
    first, out = tmp_path / "first", tmp_path / "out"
    pretrain(make_config(paths, table=make_table(), train_vectors=True), first, quiet=True)
    start = first / "model-last"
    if new_head:
        (start / "head.safetensors").unlink()
    changes = {"weights": str(start), "train_vectors": learns, "head_first": 5}
    for steps, held in [(8, False), (6, new_head)]:
        config = make_config(paths, {}, **changes, max_steps=steps, decay_steps=1, warmup_steps=1)
        if held:
            config = replace(config, training=replace(config.training, head_first=6))
        pretrain(config, out / str(steps), quiet=True)
        kept = same_table(table_of(out / str(steps) / "model-last"), table_of(start))
        assert kept == (held or not learns)
    shape = load_bilm(start).config
    given = make_config(paths, MODEL, **changes)  # its sizes need not be named
    assert given.with_model(shape, "start").model == shape
    both = make_config(paths, {}, weights=str(start), vectors="some")
    with pytest.raises(ValueError, match=r"vectors is 'some'.*has its own"):
        pretrain(both, tmp_path / "both", quiet=True)


def test_failures(paths: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    for config, said in [
        (make_config(paths), "[paths] vectors is not set, but [model] token_encoder is"),
        (
            make_config(paths, {**MODEL, "vector_dim": 7}, make_table()),
            "[model] vector_dim is 7, but the word vectors 'given' have 6; remove the setting",
        ),
    ]:
        with pytest.raises(ValueError) as error:
            pretrain(config, out, quiet=True)
        assert said in str(error.value)
        assert not out.exists()


def test_the_language_model(paths: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    pretrain(make_config(paths, table=make_table()), out, quiet=True)
    lm = LanguageModel.load(out / "model-best")
    assert len(lm.next_words(["dogs"], 3)) == 3
    [found, other] = lm.surprisals([["dogs", "bark", "never-seen"], ["No"]])
    assert found.known.tolist() == [True, True, False]
    assert np.isfinite(found.forward).all() and len(other.forward) == 1
    block = EncodedSentences(prose(), make_vocab(WORDS), None, lm.model.token_encoder.to_ids)
    batch = block.batch(np.arange(3))
    distinct = {word for words in prose()[:3] for word in words}
    assert batch.ids.shape == (len(distinct) + 2, 1)
    assert same_batches(batch, block.batch(np.arange(3)))
