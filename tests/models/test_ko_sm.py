"""The Korean biLM of the project: that it is small, whole, attributed, and was really trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import spacy
from spacy.language import Language

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.lm.encoded_sentences import EncodedSentences
from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.text.readers import blank
from spacy_elmo.text.segments import split_text
from spacy_elmo.weights.find import find_weights, load_bilm
from spacy_elmo.weights.layout import read_words

from ..threads import one_thread  # noqa: F401

KOREAN = Path(__file__).parents[2] / "project" / "weights" / "ko_sm"
OWN_TEXT = [
    "그 도시는 강의 북쪽에 있으며, 인구는 약 오만 명이다.",
    "그는 서울에서 태어나 대학을 졸업한 뒤 회사에 들어갔다.",
    "이 영화는 처음부터 끝까지 재미있고 배우들의 연기도 좋다.",
    "전쟁이 끝난 뒤 많은 사람들이 고향으로 돌아갔다.",
]


@pytest.fixture(scope="module")
def nlp() -> Language:
    nlp = blank("ko", "spacy.Tokenizer.v1")
    nlp.add_pipe("elmo", config={"model": {"weights": str(KOREAN)}})
    return nlp


def test_it_is_small() -> None:
    assert sum(file.stat().st_size for file in KOREAN.iterdir()) < 12.5e6
    assert load_bilm(KOREAN).config.width == 256
    assert len(read_words(KOREAN / "vocab.txt")) == 20_000


def test_its_card_names_language_licence_and_sources() -> None:
    card = find_weights(KOREAN).card()
    assert (card.meta["lang"], card.meta["tokenizer"]) == ("ko", "spacy.Tokenizer.v1")
    assert (card.meta["name"], card.meta["version"]) == ("ko_sm", "0.1.0")
    assert card.meta["license"] == "CC BY-SA 4.0"
    assert "Wikipedia" in json.dumps(card.meta["sources"])
    assert "perplexity" in card.documents["README.md"]
    assert "CC BY-SA 4.0" in card.documents["LICENSE"]


def test_its_training_has_no_paths_and_went_down() -> None:
    assert "/" not in (KOREAN / "training.cfg").read_text(encoding="utf-8")
    entries = [json.loads(line) for line in (KOREAN / "training.jsonl").read_text().splitlines()]
    losses = [entry["loss"] for entry in entries if "loss" in entry]
    assert losses[-1] < losses[0] - 0.7


def test_it_has_learned_korean_in_both_directions() -> None:
    head, vocab = load_head(KOREAN)
    model = load_bilm(KOREAN)
    text = EncodedSentences(
        split_text(blank("ko", "spacy.Tokenizer.v1"), OWN_TEXT),
        vocab,
        max_words=400,
        to_ids=model.token_encoder.to_ids,
    )
    trained, random = evaluate(model, head, text), evaluate(BiLM(model.config), head, text)
    assert max(trained.forward, trained.backward) < random.mean / 10


def test_the_same_word_differs_by_context(nlp: Language) -> None:
    doc = nlp("배를 타고 강을 건넜다. 배를 타고 섬으로 갔다. 밥을 많이 먹어서 배가 아프다.")
    boat, other, belly = [token for token in doc if token.text in ("배를", "배가")]
    assert boat.similarity(other) > boat.similarity(belly)


def test_it_fits_the_language(nlp: Language, recwarn: pytest.WarningsRecorder) -> None:
    assert nlp("나는 학교에 간다.").tensor.shape == (4, 256)
    assert not recwarn
    english = spacy.blank("en")
    english.add_pipe("elmo", config={"model": {"weights": str(KOREAN)}})
    with pytest.warns(UserWarning, match="were trained on 'ko'"):
        english("A text.")
