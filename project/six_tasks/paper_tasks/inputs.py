"""Docs that say what is asked of them: their second text, their question, their predicates.

All of it stands in ``doc.spans``, which spaCy copies, pickles and stores with a Doc.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc, Span

# Keys of doc.spans that are given to a component; others are what it predicts.
PREMISE, HYPOTHESIS = "premise", "hypothesis"
QUESTION, PASSAGE = "question", "passage"
PREDICATES = "predicates"
MENTIONS = "mentions"
GIVEN = (PREMISE, HYPOTHESIS, QUESTION, PASSAGE, PREDICATES, MENTIONS)


def make_pair(nlp: Language, premise: str, hypothesis: str) -> Doc:
    """A Doc that asks if its second text follows from its first."""
    return join(nlp, {PREMISE: premise, HYPOTHESIS: hypothesis})


def make_question(nlp: Language, question: str, passage: str) -> Doc:
    """A Doc that asks a question about a passage."""
    return join(nlp, {QUESTION: question, PASSAGE: passage})


def mark_predicates(doc: Doc, indices: Iterable[int]) -> Doc:
    """Mark the tokens whose arguments are asked for, and return the same Doc.

    Raises:
        ValueError: the Doc has no token of an index.
    """
    indices = list(indices)
    for i in indices:
        if not 0 <= i < len(doc):
            raise ValueError(
                f"mark_predicates: index {i}, but the Doc {doc.text[:40]!r} has {len(doc)} tokens, "
                f"numbered from 0."
            )
    doc.spans[PREDICATES] = [doc[i : i + 1] for i in indices]
    return doc


def mark_mentions(doc: Doc, spans: Iterable[Span]) -> Doc:
    """Give the mentions of a Doc, so that they are not to be found, and return the same Doc.

    Raises:
        ValueError: a span is empty.
    """
    doc.spans[MENTIONS] = not_empty(doc, MENTIONS, spans)
    return doc


def join(nlp: Language, texts: dict[str, str]) -> Doc:
    """One Doc of several texts, each a group of spans; no sentence goes across two of them."""
    split = Sentencizer()
    docs = [split(nlp.make_doc(text)) for text in texts.values()]
    words = [token.text for doc in docs for token in doc]
    # A space between the texts, so that the Doc's text can be read.
    spaces = [bool(t.whitespace_) or t.i == len(doc) - 1 for doc in docs for t in doc]
    starts = [bool(token.is_sent_start) for doc in docs for token in doc]
    joined = Doc(nlp.vocab, words=words, spaces=spaces, sent_starts=starts)
    start = 0
    for key, doc in zip(texts, docs, strict=True):
        joined.spans[key] = [joined[start : start + len(doc)]]
        start += len(doc)
    return joined


def not_empty(doc: Doc, key: str, spans: Iterable[Span]) -> list[Span]:
    """The spans as a list.

    Raises:
        ValueError: one is empty.
    """
    spans = list(spans)
    for span in spans:
        if not len(span):
            raise ValueError(
                f"doc.spans[{key!r}] of {doc.text[:40]!r} has an empty span at token "
                f"{span.start}: give spans of one token or more."
            )
    return spans


def given_spans(doc: Doc, key: str, advice: str) -> Sequence[Span]:
    """The spans that a component needs; none of an empty Doc.

    Raises:
        ValueError: the Doc has no such group.
    """
    if key in doc.spans:
        return list(doc.spans[key])
    if len(doc) == 0:
        return []
    raise ValueError(f"The Doc {doc.text[:40]!r} has no doc.spans[{key!r}]: make it by {advice}.")


def given_text(doc: Doc, key: str, advice: str) -> tuple[int, int]:
    """First token of a text and the one behind its last; (0, 0) of an empty Doc.

    Raises:
        ValueError: the Doc has none, or several.
    """
    spans = given_spans(doc, key, advice)
    if len(spans) > 1:
        raise ValueError(
            f"doc.spans[{key!r}] of {doc.text[:40]!r} has {len(spans)} spans: give one."
        )
    return (spans[0].start, spans[0].end) if spans else (0, 0)
