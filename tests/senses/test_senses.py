"""The contexts of a word, grouped: in Python and by the command."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from click.testing import Result

from spacy_elmo import find_senses
from spacy_elmo.senses.clusters import center, cluster, project
from spacy_elmo.senses.occurrences import (
    MOST_WORDS,
    Context,
    Senses,
    group_contexts,
    split_sentences,
)

from ..cli import helpers
from ..pipeline.helpers import make_nlp, write_language_model

pytest.importorskip("sklearn")

TEXT = """The bank lent money.
A bank & <b>river</b>\x01 flows. No word here.
Bank! The bank is shut.
"""


def run(*arguments: Any) -> Result:
    return helpers.run("senses", *arguments)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "tiny"
    return write_language_model(path, ["the", "The", "bank", "money", "."])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "corpus.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path / "corpus.txt"


def test_groups_that_are_far_apart() -> None:
    vectors = np.random.default_rng(0).normal(size=(9, 6)) * 0.1
    vectors[[0, 3, 4, 8]] += [5, 0, 0, 0, 0, 0]
    distance = 1 - center(vectors) @ center(vectors).T
    label, silhouette = cluster(distance, 8)
    assert silhouette is not None and silhouette > 0.9
    assert label.tolist() == [1, 0, 0, 1, 1, 0, 0, 0, 1]
    fixed, silhouette = cluster(distance, 8, n_clusters=4)
    assert len(set(fixed.tolist())) == 4 and silhouette is None
    points = project(vectors)
    assert points.shape == (9, 2)
    assert (points[label == 0, 0] > 0).all() != (points[label == 1, 0] > 0).all()


@pytest.mark.parametrize("n", [2, 3, 9])
def test_items_without_groups(n: int) -> None:
    """With zeros for vectors; in a single place, up to rounding; and equally far apart."""
    for distance in (np.full((n, n), -1e-7), np.ones((n, n)), 1 - np.eye(n)):
        label, silhouette = cluster(distance, 8)
        assert not label.any() and silhouette is None


def test_an_item_far_from_all_others_is_no_group() -> None:
    distance = np.zeros((6, 6))
    distance[5, :5] = distance[:5, 5] = 1
    label, silhouette = cluster(distance, 8)
    assert not label.any() and silhouette is None


def test_typical_contexts_come_first_and_keywords_tell_groups_apart() -> None:
    """Of the first group the middle one; a word of both groups is no keyword."""
    angles, words = np.radians([20, 0, -20, 175, 185]), ["money", "money", "loan", "mud", "mud"]
    contexts = [
        Context((f"boat {word} ", "bank", ""), np.array([np.cos(a), np.sin(a)]))
        for a, word in zip(angles, words, strict=True)
    ]
    (first, second), _ = group_contexts(contexts, spacy.blank("en"))
    assert first.contexts[0] is contexts[1] and len(first.contexts) == 3
    assert (first.keywords, second.keywords) == (["money"], ["mud"])


def test_the_command(weights: Path, corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    command, out = ["BANK", "--in", corpus, "-w", weights, "--senses", 2], tmp_path / "out.svg"
    data = json.loads(run(*command, "-o", out, "--json").stdout)
    assert data.pop("output") == str(out) and "The bank lent money." in out.read_text("utf-8")
    assert data == json.loads(run(*command, "--json").stdout)
    assert len(data["senses"]) == 2 and data["complete"]
    contexts = [context for sense in data["senses"] for context in sense["contexts"]]
    assert sorted(context["row"] for context in contexts) == [0, 1, 2, 2]
    text = run(*command).output
    assert text.count("[bank]") == 3 and text.count("[Bank]") == 1


def test_one_group_is_explained(weights: Path, tmp_path: Path) -> None:
    """By the few contexts that there are, or by the best silhouette of a division."""
    (tmp_path / "few.txt").write_text("The bank.\nThe odd bank.\nA bank.\n", encoding="utf-8")
    command = ["bank", "--in", tmp_path / "few.txt", "-w", weights]
    said = helpers.joined(run(*command).output)
    assert "One group, because no division has two groups of 2 contexts. --senses 2" in said
    assert "One group" not in run(*command, "--senses", 1).output
    assert json.loads(run(*command, "--json").stdout)["silhouette"] is None
    vectors = np.random.default_rng(0).normal(size=(40, 300))
    contexts = [Context(("", "bank", ""), vector) for vector in vectors]
    groups, silhouette = group_contexts(contexts, spacy.blank("en"))
    assert len(groups) == 1 and silhouette is not None and silhouette < 0.1
    why = Senses("bank", groups, True, silhouette).why_one
    assert why.startswith(f"the best division has a mean silhouette of {silhouette:.2f}")


def test_a_sample_of_all_contexts(weights: Path, tmp_path: Path) -> None:
    """Not the first ones; each is as likely as another, also if others are repeated; it is the same
    each time, and in the order of the corpus."""
    lines = [f"the bank lent {i}" for i in range(400)]
    for name, more in (("once", 0), ("often", 300)):
        text = "\n".join([*lines, *["the  bank lent 7"] * more])
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    settings: dict[str, Any] = {"weights": str(weights), "quiet": True, "n_senses": 1}

    def rows(name: str, most: int) -> list[int]:
        found = find_senses("bank", str(tmp_path / f"{name}.txt"), max_contexts=most, **settings)
        assert found.complete == (most >= len(lines))
        return sorted(context.row for context in found.groups[0].contexts)

    assert rows("once", 400) == rows("often", 400) == list(range(400))
    some = rows("once", 100)
    assert len(some) == 100 and rows("often", 100) == some
    assert abs(np.mean(some) - 199.5) < 40 and np.ptp(some) > 350  # evenly spread
    corpus = tmp_path / "once.txt"
    said = run("bank", "--in", corpus, "-w", weights, "--max-contexts", 100, "-s", 1).output
    assert "a sample of 100 contexts; --max-contexts groups more" in said


def test_both_words_of_a_sentence_are_contexts(weights: Path, tmp_path: Path) -> None:
    text = "bank the bank\nthe bank the\nbank the bank\n"
    (tmp_path / "two.txt").write_text(text, encoding="utf-8")
    found = find_senses("bank", str(tmp_path / "two.txt"), weights=str(weights), quiet=True)
    contexts = [context for each in found.groups for context in each.contexts]
    assert sorted((context.row, context.text[0]) for context in contexts) == [
        (0, ""), (0, "bank the "), (1, "the "),
    ]  # fmt: skip
    doc = make_nlp(weights, store=["layers"])("bank the bank")
    for context in contexts:
        if context.row == 0:
            place = 2 if context.text[0] else 0
            assert np.abs(context.vector - doc._.elmo_layers[-1, place]).max() < 1e-5


def test_a_word_of_a_tokenized_corpus(weights: Path, tmp_path: Path) -> None:
    """The tokenizer would make two of it."""
    (tmp_path / "words.txt").write_text("I don't know\nDon't go\nWe don't\n", encoding="utf-8")
    given: dict[str, Any] = {"corpus": str(tmp_path / "words.txt"), "weights": str(weights)}
    found = find_senses("don't", tokenized=True, quiet=True, **given)
    assert sum(len(group.contexts) for group in found.groups) == 3
    with pytest.raises(ValueError, match=r"has 0 different contexts in .* Only tokens of this"):
        find_senses("don't", quiet=True, **given)


def test_failures(weights: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, expected in [
        (["lent", "--in", corpus], "has 1 different contexts"),
        (["two words", "--in", corpus], "a single token"),
        (["bank", "--in", corpus, "--senses", 9], "9 are needed"),
    ]:
        assert expected in helpers.fail("senses", *arguments, "-w", weights)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert "spacy-elmo[viz]" in helpers.fail("senses", "bank", "--in", corpus, "-w", weights)


def test_a_text_without_punctuation_is_cut() -> None:
    text = "  " + "they sat on the bank " * (MOST_WORDS // 4)
    parts = list(split_sentences(spacy.blank("en").make_doc(text)))
    assert [len(part) for part in parts] == [MOST_WORDS, MOST_WORDS // 4]
    assert "".join(part.text_with_ws for part in parts).strip() == text.strip()
