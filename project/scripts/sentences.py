"""Sentences of our own: thirty with all annotations, and the raw text of a tiny run.

Those of one group in sentences.conllu have the same tree. Spans are the entities and, overlapping
with them, the phrases with a preposition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc, Span
from spacy.training.converters import conllu_to_docs
from spacy.vocab import Vocab

SENTENCES = Path(__file__).with_suffix(".conllu")
PHRASE = "PHRASE"
TOPICS = ("money", "nature")


def annotated_docs(vocab: Vocab) -> Iterator[Doc]:
    """The sentences."""
    text = SENTENCES.read_text(encoding="utf-8")
    topics = re.findall(r"^# topic = (\w+)$", text, re.M)
    docs = conllu_to_docs(text, n_sents=1, no_print=True)
    for topic, parsed in zip(topics, docs, strict=True):
        doc = Doc(vocab).from_bytes(parsed.to_bytes())
        phrases = [
            Span(doc, token.i, token.head.i + 1, PHRASE) for token in doc if token.dep_ == "case"
        ]
        doc.spans["sc"] = [*doc.ents, *phrases]
        doc.cats = {name: float(topic == name) for name in TOPICS}
        yield doc


def raw_text(split: str) -> Iterator[str]:
    """Sentences of the demo, some of which are held out, and in training those above."""
    from spacy_elmo.cli.demo import read_sentences

    for i, (_, _, sentence) in enumerate(read_sentences()):
        if (i % 10 == 9) == (split == "dev"):
            yield sentence
    if split == "train":
        for doc in annotated_docs(Vocab()):
            yield doc.text.strip().replace(" .", ".")
