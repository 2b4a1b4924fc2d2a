"""``spacy-elmo.Tok2Vec.v1``; what its parts learn is in `test_listener`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .learning import EMBED, listening, make_pipeline, start

STATIC: dict[str, Any] = {
    "@layers": "spacy.StaticVectors.v2", "nO": 8, "nM": None, "dropout": None, "key_attr": "ORTH",
    "init_W": {"@initializers": "glorot_uniform_init.v1"},
}  # fmt: skip


@pytest.mark.parametrize("embed", [STATIC, {**EMBED, "include_static_vectors": True}])
def test_static_vectors_without_vectors(weights: Path, embed: dict[str, Any]) -> None:
    tok2vec = {"@architectures": "spacy-elmo.Tok2Vec.v1", "elmo": listening(), "embed": embed}
    nlp = make_pipeline(weights, tok2vec)
    with pytest.raises(ValueError, match=r"initialize\.vectors.*--paths\.vectors"):
        start(nlp)
