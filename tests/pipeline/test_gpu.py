"""What only a GPU shows: the component and its listeners under thinc's CupyOps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spacy.language import Language
from thinc.api import to_numpy, use_ops

from .helpers import TEXTS, TOLERANCE, make_nlp, max_difference
from .learning import LISTENER, listening, make_inline, make_pipeline, start, step

pytestmark = pytest.mark.gpu


def read(nlp: Language) -> list[np.ndarray]:
    return [to_numpy(doc.tensor) for doc in nlp.pipe(TEXTS)]


@pytest.mark.parametrize("settings", [{}, {"layer_norm": True}, {"max_words": 8}])
def test_the_component_as_on_a_cpu(weights: Path, settings: dict[str, Any]) -> None:
    expected = read(make_nlp(weights, **settings))
    with use_ops("cupy"):
        nlp = make_nlp(weights, **settings)
        assert nlp.get_pipe("elmo").bilm.device.type == "cuda"
        assert max_difference(read(nlp), expected) <= TOLERANCE
        data = nlp.to_bytes()
    assert max_difference(read(make_nlp("nowhere", **settings).from_bytes(data)), expected) <= (
        TOLERANCE
    )


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("listener", [LISTENER, listening(), None], ids=["tok2vec", "elmo", "none"])
def test_training_as_on_a_cpu(weights: Path, listener: dict[str, Any] | None, frozen: bool) -> None:
    def train() -> tuple[list[float], list[np.ndarray]]:
        nlp = (
            make_inline(weights, frozen=frozen)
            if listener is None
            else make_pipeline(weights, listener, frozen=frozen)
        )
        examples, optimizer = start(nlp, learn_rate=0.001)
        losses = [step(nlp, examples, optimizer)["tagger"] for _ in range(3)]
        docs = [nlp(text) for text in TEXTS]
        return losses, [to_numpy(s) for s in nlp.get_pipe("tagger").model.predict(docs)]

    losses, scores = train()
    with use_ops("cupy"):
        gpu_losses, gpu_scores = train()
    assert gpu_losses == pytest.approx(losses, rel=1e-4)
    assert max_difference(gpu_scores, scores) <= 1e-3
