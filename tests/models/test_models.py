"""The embedded English biLM, and the Korean one of the project: that they are attributed, and were
really trained."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import spacy

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.lm.encoded_sentences import EncodedSentences
from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.perplexity import Perplexity, evaluate
from spacy_elmo.text.files import read_lines
from spacy_elmo.text.readers import blank, split_text
from spacy_elmo.weights.find import find_weights, load_bilm

from ..pipeline.helpers import make_nlp

KOREAN = Path(__file__).parents[2] / "project" / "weights" / "ko_sm"
OWN_TEXT = [
    "When the train had left the station, the children went back to the house by the river.",
    "The company was founded in the nineteenth century and soon became one of the largest.",
    "She did not know what to say, so she looked out of the window and waited for an answer.",
    "In the second half of the year the government changed the law on the use of water.",
]


def perplexity(model: BiLM, paragraphs: list[str]) -> Perplexity:
    head, vocab = load_head("en_sm")
    block = EncodedSentences(
        split_text(spacy.blank("en"), paragraphs),
        vocab,
        max_words=400,
        to_ids=model.char_cnn.to_ids,
    )
    return evaluate(model, head, block)


def test_its_card_names_licence_and_sources():
    card = find_weights("en_sm").card()
    assert card.meta["lang"] == "en"
    assert card.meta["license"] == "CC BY-SA 4.0"
    assert "Wikipedia" in json.dumps(card.meta["sources"])
    assert "perplexity" in card.documents["README.md"]
    assert "CC BY-SA 4.0" in card.documents["LICENSE"]


def improvement(log: Path) -> float:
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    losses = [entry["loss"] for entry in entries if "loss" in entry]
    return losses[0] - losses[-1]


def test_logs_show_a_training():
    english = find_weights("en_sm").path
    for name, least in (("first_training", 1.0), ("second_training", 0.4), ("training", 0.3)):
        assert improvement(english / f"{name}.jsonl") > least
    assert improvement(KOREAN / "training.jsonl") > 0.7
    assert "/" not in (KOREAN / "training.cfg").read_text(encoding="utf-8")  # no paths


def test_it_has_learned_english_in_both_directions():
    model = load_bilm("en_sm")
    untrained = BiLM(replace(model.config, int8=False))
    trained, random = perplexity(model, OWN_TEXT), perplexity(untrained, OWN_TEXT)
    assert trained.forward < 150
    assert trained.backward < 150
    assert random.mean > 10 * trained.mean


@pytest.mark.data
def test_perplexity_of_held_out_wikipedia():
    data = os.environ.get("SPACY_ELMO_DATA")
    if not data:
        pytest.skip("needs the held-out text in the folder that SPACY_ELMO_DATA names")
    text = Path(data) / "data" / "lm" / "enwiki" / "valid.txt.xz"
    paragraphs = list(islice((line for line in read_lines(text) if line.strip()), 150))
    result = perplexity(load_bilm("en_sm"), paragraphs)
    assert result.mean < 0.35 * 1077


def test_korean(recwarn: pytest.WarningsRecorder) -> None:
    """The biLM fits its language, in which the same word differs by its context."""
    nlp = blank("ko", "spacy.Tokenizer.v1")
    nlp.add_pipe("elmo", config={"model": {"weights": str(KOREAN)}})
    assert find_weights(KOREAN).card().meta["tokenizer"] == "spacy.Tokenizer.v1"
    assert nlp("나는 학교에 간다.").tensor.shape == (4, 256)
    doc = nlp("배를 타고 강을 건넜다. 배를 타고 섬으로 갔다. 밥을 많이 먹어서 배가 아프다.")
    boat, other, belly = [token for token in doc if token.text in ("배를", "배가")]
    assert boat.similarity(other) > boat.similarity(belly)
    assert not recwarn
    with pytest.warns(UserWarning, match="were trained on 'ko'"):
        make_nlp(KOREAN)("A text.")
