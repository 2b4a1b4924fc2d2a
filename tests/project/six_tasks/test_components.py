"""The four components: what they learn and predict, alone and in batches, saved and loaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from paper_tasks.coreference import Ranked, candidates, clusters_of, find_clusters, link_loss
from paper_tasks.corpus import make_example
from paper_tasks.draw import draw_answer, draw_clusters, draw_roles
from paper_tasks.inputs import make_pair, make_question, mark_mentions, mark_predicates
from paper_tasks.questions import best_span
from paper_tasks.roles import allowed_moves, roles_of, spans_of, viterbi
from spacy.language import Language
from spacy.tokens import Doc, Span

from ...pipeline.helpers import finite_difference
from .helpers import COMPONENTS, examples, make_nlp, train, unannotated

pytestmark = pytest.mark.slow  # components are trained

TASKS = ("entailment", "questions", "roles", "coreference")
SCORES = {
    "entailment": "entailment_acc",
    "questions": "answer_f1",
    "roles": "roles_f",
    "coreference": "coref_f",
    "gap": "gap_f",
}


def predictions(doc: Doc) -> dict[str, Any]:
    """All that the components set."""
    spans = {
        key: [(span.start, span.end, span.label_, span.id) for span in group]
        for key, group in doc.spans.items()
    }
    return {**spans, "entailment": doc._.entailment}


def assert_the_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    ours, theirs = dict(ours), dict(theirs)
    classes = theirs.pop("entailment")
    assert ours.pop("entailment") == (classes and pytest.approx(classes, abs=1e-5))
    assert ours == theirs


def outputs(nlp: Language, docs: list[Doc]) -> list[np.ndarray]:
    """The scores of each Doc, without padding."""
    component = nlp.get_pipe(nlp.pipe_names[-1])
    if "elmo" in nlp.pipe_names:
        docs = [nlp.get_pipe("elmo")(doc) for doc in docs]
    found = component.predict(docs)
    if component.name == "semantic_roles":
        return [found]
    if component.name == "question_answering":
        return [rows[: len(d.spans["passage"][0])] for d, rows in zip(docs, found, strict=True)]
    return [array for each in found for array in (each if isinstance(each, tuple) else [each])]


@pytest.mark.parametrize("arm", ["without", "input and output"])
@pytest.mark.parametrize("task", COMPONENTS)
def test_learns(corpora: Path, weights: Path, task: str, arm: str) -> None:
    nlp = make_nlp(corpora, task, arm, weights, dropout=0.0)
    batch = examples(nlp, corpora, task)[:12]
    losses = train(nlp, batch, 30)
    assert losses[-1] < 0.5 * losses[0]
    scores = nlp.evaluate([make_example(eg.reference) for eg in batch])
    assert scores[SCORES[task]] > 0.8, losses
    if arm != "without":
        mixes = [node for node in nlp.get_pipe(nlp.pipe_names[-1]).model.walk()
                 if node.name == "scalar_mix"]  # fmt: skip
        assert all(mix.get_param("w").any() for mix in mixes)


@pytest.mark.parametrize("task", TASKS)
def test_does_not_depend_on_the_batch(corpora: Path, weights: Path, task: str) -> None:
    nlp = make_nlp(corpora, task, "input", weights)
    docs = unannotated(nlp, corpora, task)[:6]
    alone = [array for doc in docs for array in outputs(nlp, [doc])]
    together = outputs(nlp, docs)
    if task == "roles":
        together = np.split(together[0], np.cumsum([len(a) for a in alone])[:-1])
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    backwards = list(nlp.pipe([Doc(nlp.vocab), *reversed(docs)], batch_size=3))
    singly = [nlp(doc.copy()) for doc in docs]
    for ours, theirs in zip(reversed(backwards[1:]), singly, strict=True):
        assert_the_same(predictions(ours), predictions(theirs))


@pytest.mark.parametrize("task", TASKS)
def test_gradients(corpora: Path, task: str) -> None:
    """Of the loss by the weights of the first layer that reads the token vectors."""
    nlp = make_nlp(corpora, task, dropout=0.0)
    component = nlp.get_pipe(COMPONENTS[task])
    batch = examples(nlp, corpora, task)[:3]
    docs = [eg.predicted for eg in batch]
    train(nlp, batch, 2, drop=0.0)  # away from zeros

    def run(is_train: bool) -> tuple[float, Any]:
        scores, backprop = component.model(docs, is_train)
        loss, d_scores = component.get_loss(batch, scores)
        return loss, (backprop, d_scores)

    component.model.finish_update(lambda key, value, gradient: (value, gradient * 0))
    _, (backprop, d_scores) = run(True)
    backprop(d_scores)
    [layer] = [
        node for node in component.model.walk()
        if node.name == "maxout" and node.get_dim("nO") in (96, 128) and node.get_dim("nP") == 2
    ]  # fmt: skip
    gradient, array = layer.get_grad("W").copy(), layer.get_param("W")
    for place in np.argsort(-np.abs(gradient).ravel())[[0, 3, 9]]:
        where = np.unravel_index(place, gradient.shape)

        def value() -> float:
            layer.set_param("W", array)
            return run(False)[0]

        expected = finite_difference(value, array, where, 3e-3)
        assert gradient[where] == pytest.approx(expected, rel=0.1, abs=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_saved(corpora: Path, weights: Path, task: str, tmp_path: Path) -> None:
    nlp = make_nlp(corpora, task, "input", weights)
    train(nlp, examples(nlp, corpora, task)[:4], 2)
    nlp.to_disk(tmp_path / "saved")
    docs = [predictions(nlp(doc)) for doc in unannotated(nlp, corpora, task)]
    loaded = spacy.load(tmp_path / "saved")
    copy = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    for other in (loaded, copy):
        found = [predictions(other(doc)) for doc in unannotated(other, corpora, task)]
        for ours, theirs in zip(found, docs, strict=True):
            assert_the_same(ours, theirs)
    component = nlp.get_pipe(COMPONENTS[task])
    assert copy.get_pipe(COMPONENTS[task]).cfg == component.cfg
    assert len(loaded("")) == 0


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("entailment", "no doc.spans['premise']: make it by make_pair(nlp, premise, hypothesis)."),
        (
            "questions",
            "no doc.spans['question']: make it by make_question(nlp, question, passage).",
        ),
        ("roles", "no doc.spans['predicates']: make it by mark_predicates(doc, indices)."),
    ],
)
def test_nothing_is_asked(corpora: Path, task: str, message: str) -> None:
    nlp = make_nlp(corpora, task)
    with pytest.raises(ValueError, match=re.escape(f"The Doc 'Who left?' has {message}")):
        nlp("Who left?")
    assert not nlp("").spans.get("roles")
    assert [len(doc) for doc in nlp.pipe(["", ""])] == [0, 0]


@pytest.mark.parametrize("index", [9, 3, -1])
def test_predicates_that_are_no_tokens(index: int) -> None:
    doc = spacy.blank("en")("Anna left.")
    message = f"index {index}, but the Doc 'Anna left.' has 3 tokens, numbered from 0."
    with pytest.raises(ValueError, match=re.escape(message)):
        mark_predicates(doc, [1, index])


def test_empty_spans(corpora: Path) -> None:
    message = r"'Anna left.' has an empty span at token 1: give"
    doc = spacy.blank("en")("Anna left.")
    with pytest.raises(ValueError, match=message):
        mark_mentions(doc, [doc[0:1], doc[1:1]])
    for task, key in (("roles", "predicates"), ("coreference", "mentions")):
        nlp = make_nlp(corpora, task)
        doc = nlp.make_doc("Anna left.")
        doc.spans[key] = [doc[1:1]]
        with pytest.raises(ValueError, match=message):
            nlp(doc)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("question_answering", {"max_answer": 0}, "max_answer is 0: set it to 1 or more."),
        ("coreference", {"max_width": 0}, "max_width is 0: set it to 1 or more."),
        ("coreference", {"mentions_per_word": 0.0}, "mentions_per_word is 0.0: set it above 0."),
        ("semantic_roles", {"depth": 0}, "depth is 0: set it to 1 or more."),
    ],
)
def test_settings_that_are_too_small(name: str, settings: dict[str, Any], message: str) -> None:
    config = settings if "max_answer" in settings else {"model": settings}
    with pytest.raises(ValueError, match=re.escape(message)):
        spacy.blank("en").add_pipe(name, config=config)


def test_new_class(corpora: Path) -> None:
    nlp = make_nlp(corpora, "entailment")
    doc = make_pair(nlp, "Anna left.", "She left.")
    doc._.entailment = {"maybe": 1.0}
    message = r"^The Doc 'Anna left. She left.*' has the class 'maybe', but initialize found 'con"
    with pytest.raises(ValueError, match=message):
        nlp.update([make_example(doc)])


def test_drawn() -> None:
    nlp = spacy.blank("en")
    doc = nlp("Anna left.")
    with pytest.raises(ValueError, match=r"no doc\.spans\['question'\]: make it by make_question"):
        draw_answer(doc)
    with pytest.raises(ValueError, match=r"no doc\.spans\['predicates'\]: make it by mark_pred"):
        draw_roles(doc)
    assert "Anna" in draw_clusters(doc)
    assert draw_roles(mark_predicates(doc, [1])).count("Anna") == 1
    question = make_question(nlp, "Is <b> a tag?", "Yes, <b> is.")
    question.spans["answers"] = [question[-5:-4]]
    html = draw_answer(question)
    assert "Is &lt;b&gt; a tag?" in html and "answer" in html and "<b>" not in html


def test_continued_predicates_are_no_arguments(corpora: Path) -> None:
    nlp = make_nlp(corpora, "roles")
    doc = mark_predicates(nlp.make_doc("Anna gave it up."), [1])
    spans = [(0, 1, "ARG0"), (1, 2, "V"), (2, 3, "ARG1"), (3, 4, "C-V")]
    doc.spans["roles"] = [Span(doc, *span, span_id=1) for span in spans]
    example = make_example(doc)
    example.predicted.spans["roles"] = [
        Span(example.predicted, *span, span_id=1) for span in spans[:3]
    ]
    found = nlp.get_pipe("semantic_roles").score([example])
    assert (found["roles_p"], found["roles_r"]) == (1, 1)


def test_two_questions(corpora: Path) -> None:
    nlp = make_nlp(corpora, "questions")
    doc = make_question(nlp, "Who?", "Anna. Nora.")
    doc.spans["question"] = [doc[0:1], doc[1:2]]
    with pytest.raises(ValueError, match=r"has 2 spans: give one\.$"):
        nlp(doc)


@pytest.mark.parametrize(
    ("task", "message"), [("entailment", "has classes"), ("roles", "has roles")]
)
def test_nothing_to_learn(corpora: Path, task: str, message: str) -> None:
    nlp = make_nlp(corpora, task)
    doc = mark_predicates(make_pair(nlp, "A.", "B."), [0])
    with pytest.raises(ValueError, match=f"No training Doc {message}"):
        nlp.initialize(lambda: [make_example(doc)])


def test_texts_without_words(corpora: Path) -> None:
    nlp = make_nlp(corpora, "entailment")
    found = nlp(make_pair(nlp, "Anna left.", ""))._.entailment
    assert sum(found.values()) == pytest.approx(1)
    nlp = make_nlp(corpora, "questions")
    assert len(nlp(make_question(nlp, "", "Anna left.")).spans["answers"]) == 1
    assert len(nlp(make_question(nlp, "Who left?", "")).spans["answers"]) == 0
    nlp = make_nlp(corpora, "roles")
    assert len(nlp(mark_predicates(nlp.make_doc("Anna left."), [])).spans["roles"]) == 0
    nlp = make_nlp(corpora, "coreference")
    assert clusters_of(nlp("?!")) == []
    assert clusters_of(nlp(mark_mentions(nlp.make_doc("Anna left."), []))) == []


@pytest.mark.parametrize("task", TASKS)
def test_long_texts(corpora: Path, task: str) -> None:
    nlp = make_nlp(corpora, task)
    text = "Anna sold the boat in Dover and Peter bought it . " * 300
    if task == "entailment":
        doc = make_pair(nlp, text, "Anna left.")
    elif task == "questions":
        doc = make_question(nlp, "Who left?", text)
    else:
        doc = mark_predicates(nlp.make_doc(text), range(1, 3300, 300))
    assert len(nlp(doc)) > 3000


def test_roles_stay_in_the_sentence(corpora: Path) -> None:
    nlp = make_nlp(corpora, "roles")
    doc = Doc(nlp.vocab, words=list("ababab"), sent_starts=[1, 0, 1, 0, 0, 1])
    mark_predicates(doc, [3])
    assert outputs(nlp, [doc])[0].shape[0] == 3
    assert all(2 <= span.start < span.end <= 5 for span in roles_of(nlp(doc), 3))


def test_candidates() -> None:
    vocab = spacy.blank("en").vocab
    doc = Doc(vocab, words=["Anna", ",", "too", ".", "She"], sent_starts=[1, 0, 0, 0, 1])
    assert candidates(doc, 3).tolist() == [[0, 1], [0, 3], [2, 3], [4, 5]]
    assert candidates(mark_mentions(doc, [doc[3:5]]), 3).tolist() == [[3, 5]]


def test_clusters_follow_the_best_antecedents() -> None:
    spans = np.array([[0, 1], [2, 3], [4, 5], [6, 7]])
    scores, kept = np.array([2.0, 1.0, -1.0, -3.0]), np.arange(4)
    antecedents = np.array([[-1, -1], [0, -1], [1, 0], [2, 1]])
    links = np.array([[9.0, 9], [-1, 9], [0.5, 2], [-1, -2]])
    ranked = Ranked(spans, scores, kept, antecedents, links)
    assert find_clusters(ranked, True) == [[(0, 1), (4, 5)], [(2, 3)]]
    assert find_clusters(ranked, False) == [[(0, 1), (4, 5)]]


def test_likelihood_of_antecedents() -> None:
    spans, kept = np.array([[0, 1], [2, 3], [4, 5]]), np.arange(3)
    antecedents = np.array([[-1, -1], [0, -1], [1, 0]])
    links = np.zeros((3, 2))
    ranked = Ranked(spans, np.zeros(3), kept, antecedents, links)
    # The first is none's; the second has none of 2 choices; the third 2 of its 3.
    loss, gradient = link_loss(ranked, np.array([7, -1, 7]))
    assert loss == pytest.approx(np.log(1) + np.log(2) + np.log(3))
    np.testing.assert_allclose(gradient, [[0, 0], [0.5, 0], [1 / 3, 1 / 3 - 1]], atol=1e-6)


def test_best_span() -> None:
    scores = np.array([[0.0, 5], [3, 0], [1, 1], [0, 4]])
    assert best_span(scores, 3) == (1, 4)  # not an end before its start
    assert best_span(scores, 2) == (0, 1)
    assert best_span(scores[:1], 9) == (0, 1)


def test_tags_that_are_allowed() -> None:
    tags = ["O", "B-A", "I-A", "B-B", "I-B"]
    log_p = np.log(
        [[0.4, 0.3, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.6], [0.1, 0.1, 0.1, 0.6, 0.1]]
    )
    path = [tags[i] for i in viterbi(log_p, allowed_moves(tags))]
    assert path == ["B-B", "I-B", "B-B"]  # I-B cannot follow O or B-A
    assert spans_of(path) == [(0, 2, "B"), (2, 3, "B")]
    assert viterbi(log_p[:0], allowed_moves(tags)) == []


def test_given_spans_and_sentences_are_copied(corpora: Path) -> None:
    nlp = spacy.blank("en")
    reference = mark_predicates(make_pair(nlp, "Anna left. It rained.", "She left."), [1])
    reference._.entailment = {"neutral": 1.0}
    predicted = make_example(reference).predicted
    assert [sent.text for sent in predicted.sents] == ["Anna left.", "It rained.", "She left."]
    assert set(predicted.spans) == {"premise", "hypothesis", "predicates"}
    assert predicted._.entailment is None
    assert predicted.text == "Anna left. It rained. She left. "
