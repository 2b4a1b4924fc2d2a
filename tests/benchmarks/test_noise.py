"""benchmarks/quality/noise.py at its smallest."""

from __future__ import annotations

import random
from pathlib import Path

from noise import NOISE, UNSEEN, accuracies, with_typo
from spacy.language import Language
from spacy.tokens import Doc

from .conftest import Run
from .test_perplexities import rows


def test_table(run: Run, data: Path) -> None:
    out = run("noise", data, "--size", 2, "--seeds", 0, "--max-steps", 2)
    found = rows(out)
    assert list(found) == [*NOISE, UNSEEN]
    assert all(len(cells) == 2 for cells in found.values())


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


class Tagger:
    """Knows the words of one list, as they are written."""

    def __init__(self, nlp: Language, known: dict[str, str]):
        self.vocab, self.known = nlp.vocab, known

    def pipe(self, docs: list[Doc]) -> list[Doc]:
        docs = list(docs)
        for doc in docs:
            for token in doc:
                token.tag_ = self.known.get(token.text, "?")
        return docs


def test_accuracies() -> None:
    nlp = Tagger(Language(), {"Anna": "NNP", "sings": "VBZ", "anna": "NNP"})
    gold = [(["Anna", "sings"], ["NNP", "VBZ"]), (["Bert", "sings"], ["NNP", "VBZ"])]
    found = accuracies(nlp, gold, {"Anna", "sings"}, seed=0)
    assert found["clean"] == 75 and found[UNSEEN] == 0
    assert found["lower case"] == 75 and found["upper case"] == found["typos in all"] == 0
