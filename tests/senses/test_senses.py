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
from typer.testing import CliRunner

from spacy_elmo import find_senses
from spacy_elmo.cli import app
from spacy_elmo.senses.clusters import center, divide, project
from spacy_elmo.senses.occurrences import Context, group

from ..pipeline.helpers import make_nlp, write_language_model
from ..threads import one_thread  # noqa: F401

pytest.importorskip("sklearn")

TEXT = """The bank lent money.
A bank & <b>river</b>\x01 flows. No word here.
Bank! The bank is shut.
"""


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["senses", *map(str, arguments)], env={"COLUMNS": "200"})


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
    label = divide(distance, 8)
    assert label.tolist() == [1, 0, 0, 1, 1, 0, 0, 0, 1]
    assert len(set(divide(distance, 8, exactly=4).tolist())) == 4
    points = project(vectors)
    assert points.shape == (9, 2)
    assert (points[label == 0, 0] > 0).all() != (points[label == 1, 0] > 0).all()


@pytest.mark.parametrize("n", [2, 3, 9])
def test_items_without_groups(n: int) -> None:
    """With zeros for vectors; in a single place, up to rounding; and equally far apart."""
    assert not divide(np.full((n, n), -1e-7), 8).any()
    assert not divide(np.ones((n, n)), 8).any()
    assert not divide(1 - np.eye(n), 8).any()


def test_an_item_far_from_all_others_is_no_group() -> None:
    distance = np.zeros((6, 6))
    distance[5, :5] = distance[:5, 5] = 1
    assert not divide(distance, 8).any()


def test_typical_contexts_come_first_and_keywords_tell_groups_apart() -> None:
    """Of the first group the middle one; a word of both groups is no keyword."""
    angles, words = np.radians([20, 0, -20, 175, 185]), ["money", "money", "loan", "mud", "mud"]
    contexts = [
        Context((f"boat {word} ", "bank", ""), np.array([np.cos(a), np.sin(a)]))
        for a, word in zip(angles, words, strict=True)
    ]
    first, second = group(contexts, spacy.blank("en"))
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


def test_a_single_group(weights: Path, tmp_path: Path) -> None:
    (tmp_path / "same.txt").write_text("The bank lent money.\n" * 3, encoding="utf-8")
    command = ["bank", "--in", tmp_path / "same.txt", "-w", weights]
    assert "sense 1: 3 contexts" in run(*command).output and "--senses 2" in run(*command).output
    assert "--senses 2" not in run(*command, "--senses", 1).output


def test_the_vector_is_that_of_the_whole_text(weights: Path, corpus: Path) -> None:
    doc = make_nlp(weights, store=["layers"])("Bank! The bank is shut.")
    senses = find_senses(" bank ", str(corpus), weights=str(weights), n_senses=1, quiet=True)
    [context] = [c for c in senses.groups[0].contexts if c.text[2] == " is shut."]
    assert np.abs(context.vector - doc._.elmo_layers[-1, 3]).max() < 1e-5


def test_a_word_of_a_tokenized_corpus(weights: Path, tmp_path: Path) -> None:
    """The tokenizer would make two of it."""
    (tmp_path / "words.txt").write_text("I don't know\nDon't go\nWe don't\n", encoding="utf-8")
    given: dict[str, Any] = {"corpus": str(tmp_path / "words.txt"), "weights": str(weights)}
    found = find_senses("don't", tokenized=True, quiet=True, **given)
    assert sum(len(group.contexts) for group in found.groups) == 3
    with pytest.raises(ValueError, match=r"occurs 0 times in .* Only tokens of this form"):
        find_senses("don't", quiet=True, **given)


def test_failures(
    weights: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments, expected in [
        (["lent", "--in", corpus], "occurs 1 times"),
        (["two words", "--in", corpus], "a single token"),
        (["bank", "--in", tmp_path / "gone"], "No texts at"),
        (["bank", "--in", corpus, "-o", "a.doc"], "cannot be a picture"),
        (["bank", "--in", corpus, "--senses", 9], "9 are needed"),
    ]:
        result = run(*arguments, "-w", weights)
        assert (result.exit_code, expected in " ".join(result.output.split())) == (1, True)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    result = run("bank", "--in", corpus, "-w", weights)
    assert result.exit_code == 1 and "spacy-elmo[viz]" in " ".join(result.output.split())
