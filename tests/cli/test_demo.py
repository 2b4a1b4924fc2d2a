"""``python -m spacy elmo demo``."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import spacy

from spacy_elmo.cli.demo import read_sentences
from spacy_elmo.lm.vocabulary import SPECIALS
from spacy_elmo.weights.layout import Card
from spacy_elmo.weights.native import HEAD

from ..pipeline.helpers import write_language_model, write_weights
from .helpers import fail, succeed

ROW = re.compile(r"^ +(-?\d\.\d\d) ([✔✘]) (\w+) +(.*\[(\w+)\].*)$", re.MULTILINE)
SHARE = re.compile(r"^  (\S.*\S)  +(\d+)%", re.MULTILINE)
SENTENCES = read_sentences()


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    counts = Counter(word for _, _, sentence in SENTENCES for word in sentence.split())
    path = tmp_path_factory.mktemp("weights") / "tiny"
    return write_language_model(path, [".", ",", *counts])


def demo(*arguments: object) -> str:
    return succeed("demo", *arguments)


# The sentences


def test_sentences_are_enough_for_every_sense() -> None:
    senses = Counter((word, sense) for word, sense, _ in SENTENCES)
    assert min(senses.values()) >= 3
    assert min(Counter(word for word, _ in senses).values()) >= 2
    assert len({sentence for _, _, sentence in SENTENCES}) == len(SENTENCES)
    tokenizer = spacy.blank("en").tokenizer
    for word, _, sentence in SENTENCES:
        assert [token.text for token in tokenizer(sentence)].count(word) == 1, sentence


# The tour


def test_tour(weights: Path) -> None:
    output = demo("--weights", weights)
    assert "\x1b" not in output
    titles = re.findall(r"^── (\w+)", output, flags=re.MULTILINE)
    assert titles == ["How", "One", "One", "Filling", "Limits"]
    # Every sentence counts; by static vectors, one of the others is picked at random.
    assert f"Each of {len(SENTENCES)} sentences" in output.replace("\n", " ")
    shares = dict(SHARE.findall(output))
    assert list(shares) == ["static vectors", "ELMo"]
    of_word = Counter(word for word, _, _ in SENTENCES)
    of_sense = Counter((word, sense) for word, sense, _ in SENTENCES)
    chance = [(of_sense[word, sense] - 1) / (of_word[word] - 1) for word, sense, _ in SENTENCES]
    assert shares["static vectors"] == f"{100 * np.mean(chance):.0f}"
    # Two neighbours of the first sentence of each sense of two words, by falling cosine.
    rows = ROW.findall(output)
    senses = [pair for pair in of_sense if pair[0] in ("play", "stick")]
    assert [row[4] for row in rows] == [word for word, _ in senses for _ in range(2)]
    for number, (word, own) in enumerate(senses):
        (first, *_), (second, *_) = block = rows[2 * number : 2 * number + 2]
        assert float(first) >= float(second)
        for _, mark, sense, sentence, _ in block:
            assert (word, sense, re.sub(r"[][]", "", sentence)) in SENTENCES
            assert (mark == "✔") == (sense == own)
    # Five sentences are filled in three ways.
    for name in ("left to right", "right to left", "both"):
        assert len(re.findall(rf"^    {name}  +\S", output, flags=re.MULTILINE)) == 5
    assert not any(special in output for special in SPECIALS)


def test_the_embedded_model_shows_what_it_does_best() -> None:
    """Nearly all that is shown has the same meaning; limits come last."""
    output = demo()
    assert int(dict(SHARE.findall(output))["ELMo"]) >= 75
    rows = ROW.findall(output)
    assert len(rows) == 10 and sum(mark == "✔" for _, mark, *_ in rows) >= 9
    assert all(0.55 < float(cosine) < 0.95 for cosine, *_ in rows)
    assert re.search(r"The capital of France.*Limits.*worst: \w+ \(\d+%\)", output, re.DOTALL)


def test_without_a_head_there_are_no_blanks(tmp_path: Path) -> None:
    output = demo("-w", write_weights(tmp_path / "headless"))
    assert "left to right" not in output
    assert output.replace("\n", " ").count("have no language-model head") == 1


def test_failures(tmp_path: Path) -> None:
    damaged = write_language_model(tmp_path / "damaged", ["a"])
    (damaged / HEAD).write_bytes(b"damaged")
    assert HEAD in fail("demo", "-w", damaged)
    german = write_language_model(tmp_path / "german", ["Bank"], Card({"lang": "de"}))
    assert "sentences are English, but the language of" in fail("demo", "-w", german)
