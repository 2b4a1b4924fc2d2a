"""Pipelines that version 0.1 saved (commit 793f670) load, and give what they gave."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from .helpers import TOLERANCE, max_difference

SAVED = Path(__file__).parents[1] / "fixtures" / "saved_0.1"
EXPECTED = json.loads((SAVED / "expected.json").read_text(encoding="utf-8"))
ARRAYS = np.load(SAVED / "expected.npz")
WITHOUT = ["tokenizer"]  # the language's own, which would be most of each fixture


def load(name: str) -> Language:
    if name != "component.bytes":
        return spacy.load(SAVED / name, exclude=WITHOUT)
    config = spacy.util.load_config(SAVED / "component" / "config.cfg")
    nlp = spacy.util.load_model_from_config(config)
    return nlp.from_bytes((SAVED / name).read_bytes(), exclude=WITHOUT)


def docs(nlp: Language) -> list[Doc]:
    return [nlp(text) for text in EXPECTED["texts"]]


def arrays(name: str) -> list[np.ndarray]:
    return [ARRAYS[f"{name}.{i}"] for i in range(len(EXPECTED["texts"]))]


@pytest.mark.parametrize("name", ["component", "component.bytes"])
def test_a_component(name: str) -> None:
    found = docs(load(name))
    assert max_difference([doc.tensor for doc in found], arrays("component.tensor")) <= TOLERANCE
    assert found[0]._.elmo_layers.shape == (3, len(found[0]), 16)


@pytest.mark.parametrize("name", ["replaced", "tok2vec"])
def test_a_tagger(name: str) -> None:
    """With its listener replaced by a biLM; with biLMs inside `spacy-elmo.Tok2Vec.v1`."""
    nlp = load(name)
    found = docs(nlp)
    assert [[token.tag_ for token in doc] for doc in found] == EXPECTED["tags"][name]
    scores = [nlp.get_pipe("tagger").model.predict([doc])[0] for doc in found]
    assert max_difference(scores, arrays(f"{name}.scores")) <= TOLERANCE


@pytest.mark.parametrize("name", ["component", "replaced", "tok2vec"])
def test_saved_again(name: str, tmp_path: Path) -> None:
    nlp = load(name)
    nlp.to_disk(tmp_path / "again", exclude=WITHOUT)
    again = spacy.load(tmp_path / "again", exclude=WITHOUT)
    for text in EXPECTED["texts"]:
        assert [t.tag_ for t in again(text)] == [t.tag_ for t in nlp(text)]
        if name == "component":
            assert np.abs(again(text).tensor - nlp(text).tensor).max(initial=0) <= TOLERANCE
