"""What `evidence.py` measures with, on small data whose results are known."""

from __future__ import annotations

import json
import random
from pathlib import Path

import all_words
import blimp
import homonyms
import numpy as np
import perplexities
import pytest
import similarity
import text_means
import torch
from noise import NOISE, with_typo
from spacy.language import Language

from spacy_elmo.lm.perplexity import evaluate
from spacy_elmo.lm.vocabulary import UNKNOWN

from ..pretraining.helpers import log_probabilities, make_block, make_model, make_vocab, prose
from .conftest import REVIEWS

KOREAN = Path(__file__).parents[2] / "project" / "weights" / "ko_sm"


@pytest.fixture(scope="module")
def nlp() -> Language:
    return similarity.make_nlp("en_sm")


@pytest.mark.parametrize("task", ["textcat", "intents"])
def test_text_means(data: Path, tmp_path: Path, task: str) -> None:
    """Tested on the texts that it has learned from, everything knows the classes."""
    sentences = [text.split() for _, text in REVIEWS]
    (tmp_path / "sentences.json").write_text(json.dumps(sentences), encoding="utf8")
    np.save(tmp_path / "minilm.npy", np.eye(sum(map(len, sentences)), dtype="float16")[None])
    perfect = [(100.0, 100.0)]
    ours = text_means.measure("en_sm", data, task, 0)
    assert ours == dict.fromkeys(("all layers", "tf-idf", "all layers and tf-idf"), perfect)
    assert text_means.measure("en_sm", data, task, 0, tmp_path) == {"all layers": perfect}


def test_similarity(nlp: Language, data: Path) -> None:
    assert similarity.sentences(nlp, data, None)["counted words"] == 1
    assert "compared" in similarity.in_context(nlp, data, None)
    senses = similarity.senses(nlp, data, None)
    assert senses["most frequent sense"] == 0.6  # 3 of 5
    assert senses["sentence, tf-idf"] == senses["occurrence"] == 1
    assert similarity.senses(nlp, data, 3)["most frequent sense"] == 1  # all are of the river


def test_all_words(nlp: Language, data: Path) -> None:
    """Of three instances one is of a lemma that SemCor has not, and one has a single sense."""
    found = all_words.measure(nlp, data)
    assert found["n"] == 3 and round(found["all"]["most frequent sense"]) == 33
    assert round(found["all"]["layer 2, raw"]) == round(found["all"]["occurrence"]) == 67


def test_homonyms() -> None:
    """The Korean biLM finds more than a random choice, and the token layer does not."""
    found = homonyms.measure(similarity.make_nlp(str(KOREAN)), homonyms.KOREAN)
    n, shares = found["all"]
    assert n == 42 and len(found) == 4 and round(shares["random"]) == 33
    assert shares["`elmo senses`"] > max(shares["random"] + 10, shares["layer 0"])


def test_typos() -> None:
    """One edit: the word is always another one, of a length that differs by at most one."""
    rng = random.Random(0)
    for word in ("bank", "Mississippi", "AAAA") * 30:
        typo = with_typo(word, rng)
        assert typo != word and abs(len(typo) - len(word)) <= 1
    words = ["the", "bank", "was", "12345", "closed"] * 200
    noised = [NOISE["typos in 10 %"](word, rng) for word in words]
    changed = [a for a, b in zip(words, noised, strict=True) if a != b]
    assert set(changed) == {"bank", "closed"} and 20 <= len(changed) <= 60


def test_perplexities(data: Path) -> None:
    heldout = perplexities.texts(data, "valid")
    assert list(heldout) == ["enwiki", "masc", "chat"]  # and no Korean
    lm = perplexities.LM.load("en_sm", vocab=data / "eval_vocab.txt")
    counted = lm.count(perplexities.texts(data, "train").values(), 0)
    found = lm.measure(heldout["chat"], 100, counted)
    assert found["words"] >= 100 and 1 < found["Unigrams"] < len(lm.words)
    assert abs(found["mean"] - (found["forward"] * found["backward"]) ** 0.5) < 0.1
    assert 10 <= lm.measure(heldout["chat"], 10)["words"] < 60


def test_a_restricted_head() -> None:
    """The probability of <UNK> is the sum of those of the words left out, and its own."""
    every = make_vocab(sorted({word for words in prose() for word in words}))
    model, head = make_model(len(every))
    torch.nn.init.normal_(head.weight)
    known = every.words[:2:-3]  # in another order, without the special ones
    merged = perplexities.RestrictedHead(head, every, known)
    vocab = merged.vocab
    assert vocab.words == [*every.words[:3], *(word for word in every.words[3:] if word in known)]
    others = [i for i, word in enumerate(every.words) if word not in vocab.ids]
    losses = []
    for words in prose():
        rows = np.exp(log_probabilities(model, head, [*words, "x"])[0])
        for target, row in zip([*words, "</S>"], rows, strict=True):
            index = [every[target]] if target in vocab.ids else [UNKNOWN, *others]
            losses.append(-np.log(row[index].sum()))
    result = evaluate(model, merged, make_block(prose(), vocab))
    assert result.forward == pytest.approx(np.exp(np.mean(losses)), rel=1e-5)
    assert result.unknown_rate > 0.5


def test_minimal_pairs(data: Path) -> None:
    found = blimp.measure(perplexities.LM.load("en_sm"), data)
    every = found["all"]
    assert every["pairs"] == 4 and set(every["paradigms"]["agreement_1"].values()) <= {0, 50, 100}
    assert every["paradigms"]["order_1"]["summed"] == 100  # no biLM takes words in any order
    for direction, mean in every["mean"].items():
        paradigms = [each[direction] for each in every["paradigms"].values()]
        assert mean == pytest.approx(np.mean(paradigms))
    first = blimp.read_pairs(data, every=2)
    assert [row["UID"] for row in first] == ["agreement_1", "agreement_2", "order_1"]
