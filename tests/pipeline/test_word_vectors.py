"""The component with a biLM on top of word vectors."""

from __future__ import annotations

import copy
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from spacy.language import Language

from spacy_elmo.architectures import gradual_unfreezing
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.static_vectors import WordTable
from spacy_elmo.util.files import atomic_directory
from spacy_elmo.weights.native import save_bilm

from .helpers import CARD, TEXTS, WIDTH, make_nlp, vectors_of
from .learning import LISTENER, numbers, start, step, tagger_config

WORDS = ["bank", "Play", "river", "word", "the", "银行", "\n\n"]


def make_table() -> WordTable:
    rows = np.array([0, 1, 0, 2, 3, 4, 4])
    return WordTable(WORDS, rows, np.random.default_rng(0).normal(size=(5, 6)))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    table = make_table()
    config = BiLMConfig((), WIDTH // 2, 16, 2, token_encoder="vectors", **table.sizes())
    torch.manual_seed(0)
    model = BiLM(config).eval()
    model.word_vectors.fill(table)
    with atomic_directory(tmp_path / "own") as directory:
        save_bilm(model, directory, CARD)
    return tmp_path / "own"


def table_of(nlp: Language) -> WordTable:
    [shim] = [s for node in nlp.get_pipe("elmo").model.walk() for s in node.shims]
    return shim.bilm.model.word_vectors.contents()


def learning(own: Path, **settings: Any) -> Language:
    nlp = make_nlp(own, **settings)
    nlp.add_pipe("tagger", config=tagger_config(LISTENER))
    return nlp


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("way", ["disk", "bytes", "pickle", "copy"])
def test_the_table_travels(own: Path, tmp_path: Path, way: str, frozen: bool) -> None:
    nlp = make_nlp(own, frozen=frozen)
    expected = vectors_of([nlp(text) for text in TEXTS])
    if way == "disk":
        nlp.to_disk(tmp_path / "saved")
    shutil.rmtree(own)
    if way == "disk":
        again = spacy.load(tmp_path / "saved")
    elif way == "bytes":
        again = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    else:
        again = pickle.loads(pickle.dumps(nlp)) if way == "pickle" else copy.deepcopy(nlp)
    found = vectors_of([again(text) for text in TEXTS])
    assert all((a == b).all() for a, b in zip(expected, found, strict=True))
    table = table_of(again)
    assert (table.words, len(again.vocab.vectors)) == (WORDS, 0)
    assert (table.vectors == make_table().vectors).all()


def test_fine_tuning_leaves_the_table(own: Path) -> None:
    nlp = learning(own, frozen=False)
    examples, optimizer = start(nlp)
    before = numbers(nlp.get_pipe("elmo").model)
    assert "word_vectors.table" not in before
    for _ in range(3):
        step(nlp, examples, optimizer)
    after = numbers(nlp.get_pipe("elmo").model)
    for name, value in before.items():
        assert np.abs(after[name] - value).max() > 0, name
    assert (table_of(nlp).vectors == make_table().vectors).all()


def test_unfreezing(own: Path) -> None:
    nlp = learning(own, frozen=False)
    examples, optimizer = start(nlp)
    unfreeze = gradual_unfreezing(every=1, unit="step")
    learnt = []
    for number in range(4):
        before = numbers(nlp.get_pipe("elmo").model)
        unfreeze(nlp, {"step": number, "epoch": 0})
        step(nlp, examples, optimizer)
        after = numbers(nlp.get_pipe("elmo").model)
        learnt.append(
            sorted({name.split(".")[0] for name in before if (after[name] != before[name]).any()})
        )
    assert learnt == [[], ["lstm"], ["lstm"], ["lstm", "word_vectors"]]


def test_a_frozen_one(own: Path) -> None:
    nlp = learning(own)
    examples, optimizer = start(nlp)
    before = numbers(nlp.get_pipe("elmo").model)
    step(nlp, examples, optimizer)
    after = numbers(nlp.get_pipe("elmo").model)
    assert before and all((after[name] == value).all() for name, value in before.items())
