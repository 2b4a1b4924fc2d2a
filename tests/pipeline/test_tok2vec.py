"""``spacy-elmo.Tok2Vec.v1``; what its parts learn is in `test_listener`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import spacy

from .learning import (
    EMBED,
    ENCODE,
    WORDS,
    listening,
    make_pipeline,
    start,
    started,
    step,
    tagger_config,
)

STATIC: dict[str, Any] = {
    "@layers": "spacy.StaticVectors.v2", "nO": 8, "nM": None, "dropout": None, "key_attr": "ORTH",
    "init_W": {"@initializers": "glorot_uniform_init.v1"}
}  # fmt: skip


@pytest.mark.parametrize("embed", [STATIC, {**EMBED, "include_static_vectors": True}])
def test_static_vectors_without_vectors(weights: Path, embed: dict[str, Any]) -> None:
    tok2vec = {"@architectures": "spacy-elmo.Tok2Vec.v1", "elmo": listening(), "embed": embed}
    nlp = make_pipeline(weights, tok2vec)
    with pytest.raises(ValueError, match=r"initialize\.vectors.*--paths\.vectors"):
        start(nlp)


ALONE = {"elmo": ("elmo", "embed"), "output_elmo": ("embed", "output_elmo")}


@pytest.mark.parametrize("parts", [*ALONE.values(), ("elmo", "output_elmo")], ids=" and ".join)
def test_a_biLM_of_its_own(weights: Path, parts: tuple[str, ...]) -> None:
    """`Elmo.v1` in the place of a listener, without an elmo component."""
    elmo = {"@architectures": "spacy-elmo.Elmo.v1", "weights": str(weights)}
    known = {"elmo": elmo, "output_elmo": elmo, "embed": EMBED}
    tok2vec = {"@architectures": "spacy-elmo.Tok2Vec.v1", "encode": ENCODE}
    tok2vec |= {name: known[name] for name in parts}
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger", config=tagger_config(tok2vec))
    examples, optimizer = start(nlp, learn_rate=0.01)
    losses = [step(nlp, examples, optimizer)["tagger"] for _ in range(9)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", ALONE)
def test_replaced_listeners_are_trained_anew(weights: Path, name: str) -> None:
    parts = {"elmo": listening(), "embed": EMBED, "output_elmo": listening()}
    tok2vec = {"@architectures": "spacy-elmo.Tok2Vec.v1", "encode": ENCODE}
    tok2vec |= {part: parts[part] for part in ALONE[name]}
    nlp, *_ = started(weights, tok2vec)
    nlp.replace_listeners("elmo", "tagger", [f"model.tok2vec.{name}"])
    new = spacy.blank("en").from_config(nlp.config)
    start(new)
    assert new("The bank")[1].tag_ in WORDS.values()
