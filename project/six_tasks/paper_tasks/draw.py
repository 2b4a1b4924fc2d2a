"""Predictions drawn by displaCy, as HTML."""

from __future__ import annotations

from html import escape
from typing import Any

from spacy import displacy
from spacy.tokens import Doc

from .coreference import CLUSTERS
from .inputs import PASSAGE, PREDICATES, QUESTION, given_spans, given_text
from .questions import ADVICE as QUESTION_ADVICE
from .questions import ANSWERS
from .roles import ADVICE as ROLES_ADVICE
from .roles import roles_of


def draw_answer(doc: Doc) -> str:
    """The passage with its answer marked, under the question.

    Raises:
        ValueError: the Doc has no question or passage.
    """
    question, passage = (
        doc[slice(*given_text(doc, key, QUESTION_ADVICE))] for key in (QUESTION, PASSAGE)
    )
    marked = [
        {
            "start": span.start_char - passage.start_char,
            "end": span.end_char - passage.start_char,
            "label": "answer",
        }
        for span in doc.spans.get(ANSWERS, [])
    ]
    return draw_marked(passage.text, marked, question.text)


def draw_roles(doc: Doc) -> str:
    """The Doc once for each predicate, with its arguments.

    Raises:
        ValueError: no predicates are marked.
    """
    return "\n".join(
        draw_marked(
            doc.text,
            [
                {"start": span.start_char, "end": span.end_char, "label": span.label_}
                for span in roles_of(doc, predicate.start)
            ],
            predicate.text,
        )
        for predicate in given_spans(doc, PREDICATES, ROLES_ADVICE)
    )


def draw_clusters(doc: Doc) -> str:
    """Mentions with the numbers of their clusters, those inside of others below them."""
    spans = [
        {"start_token": span.start, "end_token": span.end, "label": key.removeprefix(CLUSTERS)}
        for key, group in doc.spans.items()
        if key.startswith(CLUSTERS)
        for span in group
    ]
    data = {"text": doc.text, "spans": spans, "tokens": [token.text for token in doc]}
    return render(data, "span")


def draw_marked(text: str, marked: list[dict[str, Any]], title: str) -> str:
    return render({"text": text, "ents": marked, "title": escape(title)}, "ent")


def render(data: dict[str, Any], style: str) -> str:
    return displacy.render(data, style=style, manual=True, jupyter=False)
