"""An `entity_linker`, which takes its width where it is constructed, and reads parts of Docs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from spacy.kb import InMemoryLookupKB
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import Adam

from .helpers import WIDTH, make_nlp
from .learning import EMBED, ENCODE, LISTENER, listening, step

TEXT = "The bank is here. I sat."
ELMO: dict[str, Any] = {"@architectures": "spacy-elmo.Elmo.v1", "width": WIDTH}
PARTS: dict[str, dict[str, Any]] = {
    "all": {"elmo": LISTENER, "embed": EMBED, "encode": ENCODE, "output_elmo": LISTENER},
    "two": {"elmo": ELMO, "output_elmo": LISTENER},
    "encode": {"elmo": {**ELMO, "width": None}, "encode": ENCODE},
}


def make_kb(vocab: Vocab) -> InMemoryLookupKB:
    kb = InMemoryLookupKB(vocab, 3)
    kb.set_entities(["Q1", "Q2"], [5, 6], [[1, 2, 3], [3, -2, 1]])
    kb.add_alias("bank", ["Q1", "Q2"], [0.5, 0.4])
    return kb


def make_doc(nlp: Language, kb_id: str = "") -> Doc:
    doc = nlp.make_doc(TEXT)
    doc.ents = [Span(doc, 1, 2, label="X", kb_id=kb_id)]
    for token in doc:
        token.is_sent_start = token.i in (0, 5)
    return doc


def link(weights: Path, tok2vec: dict[str, Any]) -> Language:
    nlp = make_nlp(weights)
    model = {"@architectures": "spacy.EntityLinker.v2", "tok2vec": tok2vec}
    nlp.add_pipe("entity_linker", config={"model": model, "incl_prior": False}).set_kb(make_kb)
    examples = [Example(make_doc(nlp), make_doc(nlp, "Q1")) for _ in range(3)]
    nlp.initialize(lambda: examples)
    losses = [step(nlp, examples, Adam(0.01))["entity_linker"] for _ in range(20)]
    assert losses[-1] < losses[0]
    return nlp


def with_weights(block: dict[str, Any], weights: Path) -> dict[str, Any]:
    own = block.get("@architectures") == ELMO["@architectures"]
    parts = {n: with_weights(v, weights) if isinstance(v, dict) else v for n, v in block.items()}
    return {**parts, "weights": str(weights)} if own else parts


@pytest.mark.parametrize("parts", [None, *PARTS])
def test_its_width_is_known(weights: Path, parts: str | None) -> None:
    """By the setting of a biLM of its own, by a listener of spaCy's, or by an encoder."""
    tok2vec = ELMO if parts is None else {"@architectures": "spacy-elmo.Tok2Vec.v1", **PARTS[parts]}
    nlp = link(weights, with_weights(tok2vec, weights))
    doc = make_doc(nlp)
    for _, component in nlp.pipeline:
        doc = component(doc)
    assert doc.ents[0].kb_id_ == "Q1"


@pytest.mark.parametrize(
    "parts",
    [
        {"elmo": LISTENER, "embed": EMBED},
        {"embed": EMBED, "encode": ENCODE, "output_elmo": {**ELMO, "width": None}},
    ],
)
def test_its_width_is_not_known(weights: Path, parts: dict[str, Any]) -> None:
    tok2vec = {"@architectures": "spacy-elmo.Tok2Vec.v1", **with_weights(parts, weights)}
    said = "'entity_linker' does not know the width .* Set 'width' in its spacy-elmo.Elmo.v1"
    with pytest.raises(ValueError, match=said):
        link(weights, tok2vec)


def test_replaced_listeners_know_their_width(weights: Path) -> None:
    """Though the config of the biLM that replaces them does not."""
    nlp = link(weights, LISTENER)
    nlp.replace_listeners("elmo", "entity_linker", ["model.tok2vec"])
    nlp.initialize(lambda: [Example(make_doc(nlp), make_doc(nlp, "Q1"))])


@pytest.mark.parametrize(
    "tok2vec", [listening(), {"@architectures": "spacy-elmo.Tok2Vec.v1", "elmo": listening()}]
)
def test_parts_of_docs_have_no_layers(weights: Path, tok2vec: dict[str, Any]) -> None:
    said = r"'entity_linker' listens by .*no layers\. Use spacy\.Tok2VecListener\.v1 there"
    with pytest.warns(UserWarning, match=said), pytest.raises(ValueError, match=said):
        link(weights, tok2vec)
