"""benchmarks/quality/blimp.py at its smallest."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.lm.language_model import LanguageModel

from .conftest import Run


def test_table(run: Run, data: Path, tmp_path: Path) -> None:
    out = run("blimp", data, "--out", tmp_path / "found.json")
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    every, equal = found["all"], found["equal `<UNK>`"]
    assert (every["pairs"], equal["pairs"]) == (4, 3)  # only one has an unknown word
    assert every["paradigms"]["agreement_1"]["pairs"] == 2
    assert set(every["fields"]) == {"morphology", "syntax_semantics"}
    assert every["paradigms"]["order_1"]["summed"] == 100  # no biLM takes words in any order
    for direction, mean in every["mean"].items():
        paradigms = [each[direction] for each in every["paradigms"].values()]
        assert mean == pytest.approx(np.mean(paradigms))
    assert f"| mean of 3 paradigms | {every['mean']['forward']:.1f} | " in out
    assert "4 pairs, 3 with equal numbers" in out


def test_nats() -> None:
    """They are those of the words, which `surprisals` gives in bits, and of the end."""
    from blimp import score
    from perplexities import LM

    loaded = LM.load("en_sm")
    sentences = ["The dogs are here.", "He sings.", "The xqzzy is here."]
    nats, unknown = score(loaded, sentences)
    assert unknown.tolist() == [0, 0, 1]
    alone, _ = score(loaded, sentences[1:2])
    np.testing.assert_allclose(alone, nats[1:2], rtol=1e-5)
    lm = LanguageModel.load("en_sm")
    words = lm.surprisal(["He", "sings", "."])
    bits = np.array([words.forward.sum(), words.backward.sum()])
    ends = nats[1] - np.log(2) * bits
    assert (ends > 0).all() and (ends < 8).all()
    np.testing.assert_allclose(
        np.exp(-ends[0]), at_the_end(lm, ["He", "sings", "."]), rtol=1e-4
    )  # fmt: skip


def at_the_end(lm: LanguageModel, words: list[str]) -> float:
    """The forward probability of the end after some words: what all words leave over."""
    return 1.0 - sum(p for _, p in lm.next_words(words, len(lm.vocab))) - unknown_after(lm, words)


def unknown_after(lm: LanguageModel, words: list[str]) -> float:
    found = lm.surprisal([*words, "xqzzy"])
    return float(2.0 ** -found.forward[-1])


def test_share(data: Path) -> None:
    from blimp import read_pairs

    first = read_pairs(data, 0.5)
    assert [row["UID"] for row in first] == ["agreement_1", "agreement_2", "order_1"]
    assert first == read_pairs(data, 0.5)
    with pytest.raises(ValueError, match="share"):
        read_pairs(data, 0.0)
