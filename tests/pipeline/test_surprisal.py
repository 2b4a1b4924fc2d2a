"""The component ``elmo_surprisal``."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import srsly
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import use_ops

from spacy_elmo.lm.language_model import LanguageModel

from .helpers import TEXTS, write_language_model, write_weights

WORDS = ["The", "the", "bank", ".", "!", "They", "river", "word", "text"]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_language_model(tmp_path_factory.mktemp("weights") / "tiny", WORDS)


def make_nlp(weights: Path | str, lang: str = "en", **settings: Any) -> Language:
    nlp = spacy.blank(lang)
    nlp.add_pipe("elmo_surprisal", config={"weights": str(weights), **settings})
    return nlp


@pytest.fixture(scope="module")
def nlp(weights: Path) -> Language:
    return make_nlp(weights)


def bits(doc: Doc) -> list[float | None]:
    return [token._.surprisal for token in doc]


def same(ours: Sequence[float | None], theirs: Sequence[float | None]) -> None:
    assert [b is None for b in ours] == [b is None for b in theirs]
    known = ([b for b in each if b is not None] for each in (ours, theirs))
    np.testing.assert_allclose(*known, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_against_the_language_model(weights: Path, direction: str) -> None:
    doc = make_nlp(weights, direction=direction)("The  bank xyz.\n They the river")
    lm = LanguageModel.load(weights)
    expected: list[float | None] = []
    for words in (["The", "bank", "xyz", "."], ["They", "the", "river"]):
        found = getattr(lm.surprisal(words), direction).tolist()
        expected += [b if word in WORDS else None for b, word in zip(found, words, strict=True)]
    expected.insert(1, None)  # the second space
    expected.insert(5, None)  # the line break
    same(bits(doc), expected)


def test_sentences_of_the_doc_come_first(nlp: Language) -> None:
    doc = nlp.make_doc("the bank the river")
    for token in doc:
        token.is_sent_start = token.i in (0, 2)
    nlp.get_pipe("elmo_surprisal")(doc)
    same([bits(doc)[0], bits(doc)[3]], [bits(doc)[2], bits(nlp("the river"))[1]])


def test_batches_and_processes_change_nothing(nlp: Language) -> None:
    alone = [bits(nlp(text)) for text in TEXTS]
    assert any(b is not None for found in alone for b in found)
    for settings in ({"batch_size": 1}, {"batch_size": 3}, {"n_process": 2, "batch_size": 2}):
        for doc, expected in zip(nlp.pipe(TEXTS, **settings), alone, strict=True):
            same(bits(doc), expected)


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=9)).map(" ".join))
def test_any_text(nlp: Language, text: str) -> None:
    for token in nlp(text):
        assert (token._.surprisal is not None) == (token.text in WORDS)
        assert token._.surprisal is None or token._.surprisal > 0


def test_a_saved_pipeline_contains_the_language_model(tmp_path: Path) -> None:
    weights = write_language_model(tmp_path / "tiny", WORDS)
    nlp = make_nlp(weights, direction="backward")
    nlp.to_disk(tmp_path / "saved")
    data = nlp.to_bytes()
    pickled = pickle.dumps(nlp)
    expected = bits(nlp(TEXTS[0]))
    shutil.rmtree(weights)
    copies = [
        spacy.load(tmp_path / "saved"),
        make_nlp("nowhere", direction="backward").from_bytes(data),
        pickle.loads(pickled),
        deepcopy(nlp),
    ]
    for copy in copies:
        same(bits(copy(TEXTS[0])), expected)
    copies[0].to_disk(tmp_path / "again")
    same(bits(spacy.load(tmp_path / "again")(TEXTS[0])), expected)
    assert (tmp_path / "again" / "elmo_surprisal" / "LICENSE").exists()


def test_weights_are_loaded_when_they_are_needed(tmp_path: Path) -> None:
    nlp = make_nlp("nowhere")
    assert bits(nlp("  \n")) == [None]
    with pytest.raises(ValueError, match="Cannot find the ELMo weights 'nowhere'"):
        nlp("A word")
    with pytest.raises(ValueError, match="without a language model's head"):
        make_nlp(write_weights(tmp_path / "headless"))("A word")


def test_settings(weights: Path) -> None:
    with pytest.raises(ValueError, match=r"'both'.*'forward', 'backward'"):
        make_nlp(weights, direction="both")
    with pytest.warns(UserWarning, match="language is 'de', but the ELMo weights .* on 'en'"):
        make_nlp(weights, lang="de")("The bank")


@pytest.mark.parametrize(
    "data",
    [
        b"\xc1",
        srsly.msgpack_dumps(["config.json"]),
        srsly.msgpack_dumps({"config.json": 1}),
        srsly.msgpack_dumps({"..": b""}),
        srsly.msgpack_dumps({"config.json": b"[]"}),
    ],
)
def test_damaged_bytes(nlp: Language, data: bytes) -> None:
    expected = bits(nlp(TEXTS[0]))
    with pytest.raises(ValueError, match="Cannot read the component 'elmo_surprisal' from bytes"):
        nlp.get_pipe("elmo_surprisal").from_bytes(data)
    same(bits(nlp(TEXTS[0])), expected)  # what it had before


@pytest.mark.parametrize("name", ["config.json", "head.safetensors"])
def test_damaged_files(weights: Path, tmp_path: Path, name: str) -> None:
    make_nlp(weights).to_disk(tmp_path / "saved")
    (tmp_path / "saved" / "elmo_surprisal" / name).write_bytes(b"damaged")
    said = r"Cannot read the component 'elmo_surprisal' from .*saved"
    with pytest.raises(ValueError, match=said):
        spacy.load(tmp_path / "saved")


@pytest.mark.gpu
def test_on_a_gpu_as_on_a_cpu(weights: Path) -> None:
    expected = [bits(make_nlp(weights)(text)) for text in TEXTS]
    with use_ops("cupy"):
        nlp = make_nlp(weights)
    assert next(nlp.get_pipe("elmo_surprisal").language_model.model.parameters()).is_cuda
    for text, found in zip(TEXTS, expected, strict=True):
        same(bits(nlp(text)), found)
