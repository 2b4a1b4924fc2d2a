"""A pipeline's answers about tokens, arcs, spans and texts, which spaCy's scores count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span
from spacy.training import Example

ATTRIBUTES = {"tag": "tag_", "pos": "pos_", "lemma": "lemma_", "morph": "morph"}
ANNOTATED = {"ents": "ENT_IOB", "sents": "SENT_START"}
IGNORED = ("p", "punct")  # labels of arcs, as spaCy's parser scores them
CONTEXT = 6  # tokens to show on both sides of an answer's tokens

# What an answer is about: start and end in the reference's tokens, and for spans a label.
Place = tuple[Any, ...]
Answers = dict[Place, tuple[Any, Any]]  # the right answer and the predicted one; None for no answer


def find_answers(score: str, example: Example) -> Answers | None:
    """Find the answers, right and wrong, that a score of spaCy's counts.

    Args:
        score: the score's name, such as ``"tag_acc"``, ``"dep_las"``, ``"ents_f"`` or
            ``"spans_sc_p"``; or ``"cats"`` for the classes of the text.
        example: a predicted Doc, and its reference.

    Returns:
        The answers by their places; None if the score does not count answers.
    """
    kind, _, measure = score.rpartition("_")
    if kind in ATTRIBUTES and measure == "acc":
        gold, predicted = find_values(example, ATTRIBUTES[kind])
    elif kind == "dep" and measure in ("uas", "las"):
        gold, predicted = find_arcs(example, measure == "las")
    elif (kind in ("ents", "sents") or kind.startswith("spans_")) and measure in ("p", "r", "f"):
        gold, predicted = find_spans(example, kind)
    elif score == "cats":
        gold, predicted = find_classes(example)
    else:
        return None
    return {place: (gold.get(place), predicted.get(place)) for place in {**gold, **predicted}}


def count(answers: Answers) -> tuple[int, int, int]:
    """Count true positives, false positives and false negatives."""
    right = sum(gold == predicted for gold, predicted in answers.values())
    n_predicted = sum(predicted is not None for _, predicted in answers.values())
    return right, n_predicted - right, sum(gold is not None for gold, _ in answers.values()) - right


def find_values(example: Example, attribute: str) -> tuple[dict[Place, str], dict[Place, str]]:
    """The right and the predicted values of an attribute, where the reference has one."""
    gold, predicted, places = dict[Place, str](), dict[Place, str](), alignment(example)
    for token in example.reference:
        if token.has_morph() if attribute == "morph" else getattr(token, attribute):
            gold[token.i, token.i + 1] = str(getattr(token, attribute))
    for j, i in places.items():
        if (i, i + 1) in gold:
            predicted[i, i + 1] = str(getattr(example.predicted[j], attribute))
    return gold, predicted


def find_arcs(example: Example, is_labelled: bool) -> tuple[dict[Place, Any], dict[Place, Any]]:
    """The right and the predicted heads, with the labels of the arcs; without punctuation."""
    gold, predicted, places = dict[Place, Any](), dict[Place, Any](), alignment(example)
    for token in example.reference:
        if token.dep and token.dep_.lower() not in IGNORED:
            gold[token.i, token.i + 1] = token.head.i, token.dep_.lower() * is_labelled
    for token in example.predicted:
        i, label = places.get(token.i, -1 - token.i), token.dep_.lower()
        is_missing = i >= 0 and not example.reference[i].dep
        if not (token.is_space or is_missing or label in IGNORED):
            predicted[i, i + 1] = places.get(token.head.i), label * is_labelled
    return gold, predicted


def find_spans(example: Example, kind: str) -> tuple[dict[Place, str], dict[Place, str]]:
    """The right and the predicted entities, sentences, or spans of a group, by their labels."""

    def read(doc: Doc) -> list[Span]:
        if kind in ANNOTATED:
            return list(getattr(doc, kind)) if doc.has_annotation(ANNOTATED[kind]) else []
        return list(doc.spans.get(kind.partition("_")[2], ()))

    def labels(spans: Iterable[Span]) -> dict[Place, str]:
        return {(span.start, span.end, span.label_): span.label_ or kind for span in spans}

    reference = example.reference
    if kind in ANNOTATED and not reference.has_annotation(ANNOTATED[kind]):
        return {}, {}
    aligned = example.get_aligned_spans_x2y(read(example.predicted), kind not in ANNOTATED)
    return labels(read(reference)), labels(aligned)


def find_classes(example: Example) -> tuple[dict[Place, str], dict[Place, str]]:
    """The right and the predicted classes of a text: scores of 0.5 or more, or the highest of
    exclusive classes."""

    def read(doc: Doc) -> dict[Place, str]:
        chosen = sorted(name for name, score in doc.cats.items() if score >= 0.5)
        if abs(sum(doc.cats.values()) - 1) < 1e-3:
            chosen = [max(doc.cats, key=doc.cats.__getitem__)]
        return {(0, len(example.reference)): ", ".join(chosen)}

    return read(example.reference), read(example.predicted)


def alignment(example: Example) -> dict[int, int]:
    """Predicted tokens, without whitespace, and the reference's token for each, if it is one."""
    x2y = example.alignment.x2y
    tokens = [token.i for token in example.predicted if not token.is_space]
    return {i: int(x2y[i][0]) for i in tokens if x2y.lengths[i] == 1}


class Error(NamedTuple):
    """A wrong answer.

    Attributes:
        doc: index of the Doc.
        text: the tokens of the answer, in brackets, and the text around them.
        right, wrong: both answers.
    """

    doc: int
    text: str
    right: str
    wrong: str


def find_errors(
    bad: Sequence[Sequence[Answers]], good: Sequence[Sequence[Answers]], docs: Sequence[Doc]
) -> list[Error]:
    """Find the answers that some pipelines all get wrong, and others all get right.

    Args:
        bad: for each pipeline that gets them wrong, the answers about each Doc.
        good: the same for the others.
        docs: the references.
    """

    def is_wrong(answers: Answers, place: Place) -> bool:
        gold, predicted = answers.get(place, (None, None))
        return gold != predicted

    return [
        Error(i, around(doc, place), *(show(value, doc, place) for value in both))
        for i, doc in enumerate(docs)
        for place, both in bad[0][i].items()
        if place[0] >= 0
        and all(is_wrong(each[i], place) for each in bad)
        and not any(is_wrong(each[i], place) for each in good)
    ]


def show(value: Any, doc: Doc, place: Place) -> str:
    """An answer as text; for an arc, the label and the head."""
    if not isinstance(value, tuple):
        return value or "–"
    head, label = value
    return label if head in (None, place[0]) else f"{label} of “{doc[head].text}”"


def around(doc: Doc, place: Place) -> str:
    """The tokens of a place in brackets, and the text around them."""
    start, end = place[:2]
    if end - start == len(doc):
        return doc.text
    left, right = doc[max(0, start - CONTEXT) : start], doc[end : end + CONTEXT]
    return f"{left.text_with_ws}[{doc[start:end].text}]{doc[end - 1].whitespace_}{right.text}"
