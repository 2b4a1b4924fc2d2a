"""``python -m spacy elmo perplexity``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import spacy

from spacy_elmo.bilm.characters import CharacterIds
from spacy_elmo.lm.encoded_sentences import EncodedSentences
from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.text.readers import split_text
from spacy_elmo.weights.find import load_bilm
from spacy_elmo.weights.layout import Card

from ..pipeline.helpers import write_language_model, write_weights
from .helpers import fail, joined, run, succeed

TEXT = "The bank didn't close. It lay by the river!\n\n \nThe end, (at 7) and  a new bank. Yes?\n"
WORDS = ["The", "the", "bank", ".", ",", "n't", "river", "and", "never-seen"]
SENTENCES = list(split_text(spacy.blank("en"), TEXT.splitlines()))


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_language_model(tmp_path_factory.mktemp("weights") / "tiny", WORDS)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def measured(text: Path, weights: Path, *options: Any) -> dict[str, Any]:
    command = ["perplexity", text, "-w", weights, *options, "--json"]
    return json.loads(run(*command).stdout)


def test_raw_text(weights, text) -> None:
    head, vocab = load_head(weights)
    block = EncodedSentences(SENTENCES, vocab, max_words=100, to_ids=CharacterIds(3))
    result, data = evaluate(load_bilm(weights), head, block), measured(text, weights)
    assert [data[name] for name in ("forward", "backward", "mean")] == pytest.approx(
        [result.forward, result.backward, result.mean], rel=1e-5
    )
    assert (data["words"], data["sentences"], data["vocabulary"]) == (26, 4, len(WORDS) + 3)
    assert data["unknown"] == result.n_unknown
    assert data["unknown_rate"] == pytest.approx(result.n_unknown / result.n_words)
    page = joined(succeed("perplexity", text, "-w", weights))
    assert f"mean {result.mean:.4g} sentences 4" in page


def test_other_forms_of_the_text(weights, text, tmp_path) -> None:
    lines = tmp_path / "sentences.txt"
    lines.write_text("".join(" ".join(words) + "\n" for words in SENTENCES), encoding="utf-8")
    shards = tmp_path / "shards"
    succeed("tokenize", text, shards)
    data = measured(text, weights)
    assert json.loads(run("perplexity", text, "--json").stdout)["vocabulary"] == 20_000  # en_sm
    assert {**measured(shards, weights), "text": ""} == {**data, "text": ""}
    assert measured(lines, weights, "--tokenized")["mean"] == data["mean"]


def test_language(weights, text, tmp_path) -> None:
    mute = write_language_model(tmp_path / "mute", WORDS, card=Card())
    assert "does not name their language" in fail("perplexity", text, "-w", mute)
    assert measured(text, mute, "--lang", "en")["words"] == 26
    assert measured(text, weights, "--lang", "xx")["words"] == 25  # didn't is one word


def test_failures(weights, text, tmp_path) -> None:
    blank, headless = tmp_path / "blank.txt", write_weights(tmp_path / "headless")
    blank.write_text(" \n", encoding="utf-8")
    assert "without a language model's head" in fail("perplexity", text, "-w", headless)
    assert "There are no words in the text" in fail("perplexity", blank, "-w", weights)
