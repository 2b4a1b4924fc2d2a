"""A biLM whose gates are rounded to int8, in pipelines."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy

from spacy_elmo.bilm.int8 import round_gates
from spacy_elmo.weights.find import load_bilm
from spacy_elmo.weights.native import save_bilm

from .helpers import CARD, TEXTS, make_nlp, write_weights
from .learning import make_pipeline, start, step


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In int8, of random weights."""
    folder = tmp_path_factory.mktemp("int8")
    save_bilm(round_gates(load_bilm(str(write_weights(folder / "float")))), folder, CARD)
    return folder


def bilm_of(nlp: Any) -> Any:
    return nlp.get_pipe("elmo").bilm.model


def tensors(nlp: Any) -> list[np.ndarray]:
    return [doc.tensor for doc in nlp.pipe(TEXTS)]


def test_copies_and_sourced_ones_are_int8_too(weights: Path) -> None:
    nlp = make_nlp(weights)
    expected = tensors(nlp)
    sourced = spacy.blank("en")
    sourced.add_pipe("elmo", source=nlp)
    for copied in (deepcopy(nlp), sourced):
        assert bilm_of(copied).config.int8
        assert all(map(np.array_equal, tensors(copied), expected))


def test_a_step_of_training_ends_it_and_says_so_once(weights: Path, tmp_path: Path) -> None:
    nlp = make_pipeline(weights, frozen=False)
    examples, optimizer = start(nlp)
    assert bilm_of(nlp).config.int8
    with pytest.warns(UserWarning, match="no longer rounded to int8") as said:
        step(nlp, examples, optimizer, batches=3)
    assert len([each for each in said if "int8" in str(each.message)]) == 1
    assert not bilm_of(nlp).config.int8
    nlp.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    assert all(map(np.array_equal, tensors(loaded), tensors(nlp)))
