"""The component's setting ``initial_state``."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language

from spacy_elmo.bilm.model import BiLM

from .helpers import CONFIG, TEXTS, TOLERANCE, make_nlp, max_difference, vectors_of, write_weights


@pytest.fixture
def warm_weights(tmp_path: Path) -> Path:
    """Weights that ask for a warm state and bring none, as published ones."""
    return write_weights(tmp_path / "warm", config=replace(CONFIG, initial_state="warm"))


def read(weights: Path | str, **settings: Any) -> list[np.ndarray]:
    return vectors_of(list(make_nlp(weights, **settings).pipe(TEXTS)))


def test_auto_is_what_the_weights_say(weights: Path, warm_weights: Path) -> None:
    zero, warm = read(weights), read(warm_weights)  # the same numbers otherwise
    assert max_difference(zero, warm) > 0.01
    assert max_difference(read(weights, initial_state="zero"), zero) == 0
    assert max_difference(read(weights, initial_state="warm"), warm) == 0
    assert max_difference(read(warm_weights, initial_state="zero"), zero) == 0
    assert max_difference(read(warm_weights, initial_state="warm"), warm) == 0


def by_disk(nlp: Language, tmp_path: Path) -> Language:
    nlp.to_disk(tmp_path / "saved")
    return spacy.load(tmp_path / "saved")


def by_pickle(nlp: Language, tmp_path: Path) -> Language:
    return pickle.loads(pickle.dumps(nlp))


@pytest.mark.parametrize("way", [by_disk, by_pickle])
@pytest.mark.parametrize("setting", ["auto", "warm"])
def test_saved_with_the_pipeline(
    way: Callable[[Language, Path], Language],
    setting: str,
    warm_weights: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = read(warm_weights)
    saved = make_nlp(warm_weights, initial_state=setting)  # nothing has needed its state so far
    loaded = way(saved, tmp_path)
    shutil.rmtree(warm_weights)
    monkeypatch.setattr(BiLM, "compute_warm_state", None)  # of another version, say
    assert max_difference(vectors_of(list(loaded.pipe(TEXTS))), expected) <= TOLERANCE
