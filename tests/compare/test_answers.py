"""The answers that scores count: their sums are spaCy's scores."""

from __future__ import annotations

import random

import numpy as np
import pytest
import spacy
from spacy.scorer import Scorer
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_elmo.compare.answers import count, find_answers, find_errors
from spacy_elmo.compare.bootstrap import DRAWS, SLOW_DRAWS, interval, resample
from spacy_elmo.compare.report import give_verdict

SCORES = {
    "tag_acc": "tagger", "pos_acc": "morphologizer", "morph_acc": "morphologizer",
    "lemma_acc": "trainable_lemmatizer", "dep_uas": "parser", "dep_las": "parser",
    "sents_p": "parser", "sents_r": "parser", "sents_f": "parser", "ents_p": "ner",
    "ents_r": "ner", "ents_f": "ner", "spans_sc_p": "spancat", "spans_sc_f": "spancat",
}  # fmt: skip
LABELS = ["nsubj", "obj", "punct", "det"]


@pytest.fixture(scope="module")
def nlp() -> spacy.Language:
    nlp = spacy.blank("en")
    for name in dict.fromkeys(SCORES.values()):
        nlp.add_pipe(name)
    nlp.add_pipe("textcat")
    for label in ("A", "B", "C"):
        nlp.get_pipe("textcat").add_label(label)
    return nlp


def make_doc(nlp: spacy.Language, words: list[str], rng: random.Random) -> Doc:
    """A Doc with annotations by chance."""
    n = len(words)
    heads = [rng.randrange(n) for _ in words]
    heads = [min(head, i) for i, head in enumerate(heads)]  # a forest
    doc = Doc(
        nlp.vocab, words=words, spaces=[word != "can" for word in words], heads=heads,
        tags=rng.choices(["A", "B", ""], k=n), pos=rng.choices(["NOUN", "VERB"], k=n),
        lemmas=rng.choices("ab", k=n), morphs=rng.choices(["Number=Sing", "Case=Nom", ""], k=n),
        deps=["ROOT" if head == i else rng.choice(LABELS) for i, head in enumerate(heads)],
        ents=rng.choices(["O", "B-PER", "B-LOC"], k=n),
    )  # fmt: skip
    spans = [(i, rng.randint(i + 1, n)) for i in rng.sample(range(n), k=n // 2)]
    doc.spans["sc"] = [Span(doc, a, b, label=rng.choice("XY")) for a, b in spans]
    chosen = rng.choice("ABC")
    doc.cats = {label: float(label == chosen) for label in "ABC"}
    return doc


@pytest.fixture(scope="module")
def examples(nlp: spacy.Language) -> list[Example]:
    """Some with other tokens in the predicted Doc."""
    rng = random.Random(0)
    made = []
    for number in range(30):
        words = rng.choices(["I", "can", "not", "go", "."], k=rng.randint(2, 9))
        words += ["can", "not", "go"]
        text = " ".join(words).replace("can not", "cannot").split() if number % 3 == 0 else words
        made.append(Example(make_doc(nlp, text, rng), make_doc(nlp, words, rng)))
    return made


@pytest.mark.parametrize("name", SCORES)
def test_their_sums_are_spacys_scores(
    nlp: spacy.Language, examples: list[Example], name: str
) -> None:
    def score(some: list[Example]) -> float:
        return nlp.get_pipe(SCORES[name]).score(some)[name]

    counts = [count(find_answers(name, example) or {}) for example in examples]
    right, false, missed = np.sum(counts, 0)
    kinds = {"_p": right / (right + false), "_r": right / (right + missed)}
    f1 = 2 * right / (2 * right + false + missed)
    assert kinds.get(name[-2:], f1) == pytest.approx(score(examples))
    assert 0 < f1 < 1
    # And so are those of draws of Docs.
    [first, second, *_] = resample(name, examples, lambda some: 1 / 0)
    n = len(examples)
    draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=2)
    for value, row in zip((first, second), draws, strict=True):
        drawn = [examples[i] for i in np.repeat(range(n), row)]
        assert value == pytest.approx(score(drawn))


def test_other_scores_are_computed_for_lists(nlp: spacy.Language, examples: list[Example]) -> None:
    assert find_answers("cats_score", examples[0]) is None
    score = Scorer(nlp)
    found = resample("cats_score", examples, lambda some: score.score(some)["cats_score"])
    assert len(found) == SLOW_DRAWS and found.std() > 0
    assert found.mean() == pytest.approx(score.score(examples)["cats_score"], abs=0.1)


def test_errors_in_words(nlp: spacy.Language) -> None:
    """Wrong in all of some, and right in all of others."""

    def make(heads: list[int], deps: list[str], cats: dict[str, float]) -> Doc:
        doc = Doc(nlp.vocab, words=["She", "sang", "it", "."], heads=heads, deps=deps)
        doc.cats = cats
        return doc

    def errors(score: str, bad: list[Doc], good: list[Doc]) -> list[tuple[str, ...]]:
        every = (
            [[find_answers(score, Example(doc, gold)) or {}] for doc in d] for d in (bad, good)
        )
        return [error[1:] for error in find_errors(*every, [gold])]

    gold = make([1, 1, 1, 1], ["nsubj", "ROOT", "obj", "punct"], {"A": 1.0, "B": 0.0})
    one = make([0, 0, 1, 1], ["ROOT", "dep", "dep", "punct"], {"A": 0.4, "B": 0.6})
    two = make([0, 0, 1, 1], ["ROOT", "dep", "obj", "punct"], {"A": 0.7, "B": 0.6})
    assert errors("dep_las", [one, two], [gold, gold]) == [
        ("[She] sang it .", "nsubj of “sang”", "root"), ("She [sang] it .", "root", "dep of “She”")
    ]  # fmt: skip
    assert errors("dep_las", [one], [gold, two]) == [
        ("She sang [it] .", "obj of “sang”", "dep of “sang”")
    ]
    assert errors("cats", [one], [gold]) == [("She sang it . ", "A", "B")]
    assert errors("cats", [two], [gold]) == [("She sang it . ", "A", "A, B")]  # not exclusive
    assert errors("cats", [gold], [gold]) == []


def test_an_interval_by_hand(nlp: spacy.Language) -> None:
    """Two Docs of one word, of which ELMo mends the first one: draws of two give 0, ½ or 1 with
    probabilities of ¼, ½ and ¼."""

    def predicted(*tags: str) -> list[Example]:
        docs = [Doc(nlp.vocab, words=["a"], tags=[tag]) for tag in tags]
        return [Example(doc, Doc(nlp.vocab, words=["a"], tags=["X"])) for doc in docs]

    without, elmo = (resample("tag_acc", predicted(*t), print) for t in ("YX", "XX"))
    values, counts = np.unique(elmo - without, return_counts=True)
    assert values.tolist() == [0, 0.5, 1]
    assert (counts / DRAWS).tolist() == pytest.approx([0.25, 0.5, 0.25], abs=0.05)
    assert interval([without], [elmo]) == (0, 1)
    assert interval([without], [without]) == (0, 0)


def test_seeds_that_differ_widen_it() -> None:
    """Whatever the Docs say: of three seeds, 2 in 27 draws have the same seed three times."""
    equal = np.full((3, DRAWS), 0.1)
    assert interval(0 * equal, equal) == pytest.approx((0.1, 0.1))
    seeds = np.array([[-0.2], [0.1], [0.4]])
    low, high = interval(0 * equal, 0 * equal + seeds)
    assert low == pytest.approx(-0.2) and high == pytest.approx(0.4)


def test_verdicts() -> None:
    up, down, unsure = (0.01, 0.03), (-0.04, -0.01), (-0.01, 0.02)
    assert give_verdict({"tag_acc": up, "dep_las": unsure}) == (
        "ELMo helps here: it raises tag_acc; the interval of dep_las includes zero (dev)."
    )
    assert give_verdict({"ents_f": unsure}).startswith("ELMo does not help here: the interval of e")
    assert give_verdict({"ents_f": down}) == "ELMo harms here: it lowers ents_f (dev)."
    assert "helps and harms here: it raises a; it lowers b" in give_verdict({"a": up, "b": down})
