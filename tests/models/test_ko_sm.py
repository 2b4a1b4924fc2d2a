"""The Korean biLM of the project was really trained, and fits its language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from spacy.language import Language

from spacy_elmo.text.readers import blank
from spacy_elmo.weights.find import find_weights

from ..pipeline.helpers import make_nlp

KOREAN = Path(__file__).parents[2] / "project" / "weights" / "ko_sm"


@pytest.fixture(scope="module")
def nlp() -> Language:
    nlp = blank("ko", "spacy.Tokenizer.v1")
    nlp.add_pipe("elmo", config={"model": {"weights": str(KOREAN)}})
    return nlp


def test_its_training_has_no_paths_and_went_down() -> None:
    assert "/" not in (KOREAN / "training.cfg").read_text(encoding="utf-8")
    entries = [json.loads(line) for line in (KOREAN / "training.jsonl").read_text().splitlines()]
    losses = [entry["loss"] for entry in entries if "loss" in entry]
    assert losses[-1] < losses[0] - 0.7


def test_the_same_word_differs_by_context(nlp: Language) -> None:
    doc = nlp("배를 타고 강을 건넜다. 배를 타고 섬으로 갔다. 밥을 많이 먹어서 배가 아프다.")
    boat, other, belly = [token for token in doc if token.text in ("배를", "배가")]
    assert boat.similarity(other) > boat.similarity(belly)


def test_it_fits_the_language(nlp: Language, recwarn: pytest.WarningsRecorder) -> None:
    assert find_weights(KOREAN).card().meta["tokenizer"] == "spacy.Tokenizer.v1"
    assert nlp("나는 학교에 간다.").tensor.shape == (4, 256)
    assert not recwarn
    with pytest.warns(UserWarning, match="were trained on 'ko'"):
        make_nlp(KOREAN)("A text.")
