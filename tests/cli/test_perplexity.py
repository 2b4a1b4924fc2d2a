"""``python -m spacy elmo perplexity``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import spacy
from click.testing import Result
from typer.testing import CliRunner

from spacy_elmo.bilm.characters import CharacterIds
from spacy_elmo.cli import app
from spacy_elmo.lm.encoded_sentences import EncodedSentences
from spacy_elmo.lm.head import load_head
from spacy_elmo.lm.perplexity import Perplexity, evaluate
from spacy_elmo.text.split_text import split_text
from spacy_elmo.weights.find import load_bilm
from spacy_elmo.weights.layout import Card

from ..pipeline.helpers import write_language_model, write_weights

TEXT = "The bank didn't close. It lay by the river!\n\n \nThe end, (at 7) and  a new bank. Yes?\n"
WORDS = ["The", "the", "bank", ".", ",", "n't", "river", "and", "never-seen"]


def run(*arguments: Any) -> Result:
    command = ["perplexity", *map(str, arguments)]
    return CliRunner().invoke(app, command, env={"COLUMNS": "200"})


def measured(*arguments: Any) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_language_model(tmp_path_factory.mktemp("weights") / "tiny", WORDS)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def sentences() -> list[list[str]]:
    return list(split_text(spacy.blank("en"), TEXT.splitlines()))


def expected(weights: Path) -> Perplexity:
    head, vocab = load_head(weights)
    block = EncodedSentences(sentences(), vocab, max_words=100, to_ids=CharacterIds(3))
    return evaluate(load_bilm(weights), head, block)


def test_raw_text(weights: Path, text: Path) -> None:
    result, data = expected(weights), measured(weights, text)
    assert [data[name] for name in ("forward", "backward", "mean")] == pytest.approx(
        [result.forward, result.backward, result.mean], rel=1e-5
    )
    assert data["words"] == result.n_words == 26
    assert data["sentences"] == len(sentences()) == 4
    assert data["unknown"] == result.n_unknown
    assert data["unknown_rate"] == pytest.approx(result.n_unknown / result.n_words)
    assert data["vocabulary"] == len(WORDS) + 3
    assert data["text"] == str(text)


def test_precision(weights: Path, text: Path) -> None:
    exact, rounded = measured(weights, text), measured(weights, text, "--precision", "bfloat16")
    assert exact["mean"] != rounded["mean"] == pytest.approx(exact["mean"], rel=0.01)


def test_for_people(weights: Path, text: Path) -> None:
    result = run(weights, text)
    assert result.exit_code == 0
    rows = dict(line.rsplit("   ", 1) for line in result.output.splitlines() if line.strip())
    found = {name.strip(): value.strip() for name, value in rows.items()}
    assert found["mean"] == f"{expected(weights).mean:.2f}"
    assert found["sentences"] == "4"
    assert "%" in found["<UNK> among them"]


def test_other_forms_of_the_text(weights: Path, text: Path, tmp_path: Path) -> None:
    data = measured(weights, text)
    packed = tmp_path / "text.txt.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()))
    lines = tmp_path / "sentences.txt"
    lines.write_text("".join(" ".join(words) + "\n" for words in sentences()), encoding="utf-8")
    shards = tmp_path / "shards"
    tokenized = CliRunner().invoke(app, ["tokenize", str(text), str(shards)])
    assert tokenized.exit_code == 0
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")  # raw, as there is no meta.json
    for others in (
        measured(weights, packed),
        measured(weights, folder),
        measured(weights, lines, "--tokenized"),
        measured(weights, shards),
        measured(weights, next(shards.glob("shard-*"))),
    ):
        assert {**others, "text": ""} == {**data, "text": ""}


def test_language(weights: Path, text: Path, tmp_path: Path) -> None:
    mute = write_language_model(tmp_path / "mute", WORDS, card=Card())
    result = run(mute, text)
    assert result.exit_code == 1
    assert "does not name their language" in " ".join(result.output.split())
    assert measured(mute, text, "--lang", "en")["words"] == 26
    assert measured(weights, text, "--lang", "xx")["words"] == 25  # didn't is one word
    assert run(weights, text, "--lang", "qq").exit_code == 1


def test_heads_of_other_vocabularies_are_compared(
    weights: Path, text: Path, tmp_path: Path
) -> None:
    """By what both know; the fewer words are told apart, the easier they are."""
    both = ["river", "the", ".", "bank"]
    vocab = tmp_path / "both.txt"
    vocab.write_text("\n".join(both) + "\n", encoding="utf-8")
    data = measured(weights, text, "--vocab", vocab)
    assert data["vocabulary"] == len(both) + 3
    assert data["unknown"] == sum(word not in both for words in sentences() for word in words)
    assert data["mean"] < measured(weights, text)["mean"]
    # The head's own vocabulary, special words and all, is no restriction.
    again = measured(weights, text, "--vocab", weights / "vocab.txt")
    assert again["mean"] == pytest.approx(measured(weights, text)["mean"], rel=1e-6)


def test_failures(weights: Path, text: Path, tmp_path: Path) -> None:
    (tmp_path / "blank.txt").write_text(" \n", encoding="utf-8")
    (tmp_path / "latin.txt").write_bytes("Größe".encode("latin-1"))
    (tmp_path / "words.txt").write_text("bank\nBahn\nZug\n", encoding="utf-8")
    (tmp_path / "none.txt").write_text("\n\n", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    headless = write_weights(tmp_path / "headless")
    for arguments, said in [
        ([headless, text], "without a language model's head"),
        (["nowhere", text], "Cannot find the ELMo weights 'nowhere'"),
        ([weights, tmp_path / "gone.txt"], "gone.txt: there is no such file"),
        ([weights, tmp_path / "blank.txt"], "There are no words in the text"),
        ([weights, tmp_path / "latin.txt"], "Cannot read"),
        ([weights, tmp_path / "folder"], "No texts at"),
        ([weights, text, "--vocab", tmp_path / "words.txt"], "2 words that are not among the 12"),
        ([weights, text, "--vocab", tmp_path / "none.txt"], "has no words"),
        ([weights, text, "--vocab", tmp_path / "gone.txt"], "Cannot read the vocabulary"),
        ([weights, text, "--vocab", tmp_path / "latin.txt"], "Cannot read the vocabulary"),
        ([weights, text, "--gpu-id", "99"], "no GPU 99"),
        ([weights, text, "--precision", "half"], "The precision is 'half'; known are"),
    ]:
        result = run(*arguments)
        assert (result.exit_code, said in " ".join(result.output.split())) == (1, True), said
