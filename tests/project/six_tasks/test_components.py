"""The four components learn."""

from __future__ import annotations

from pathlib import Path

import pytest
from paper_tasks.corpus import make_example

from .helpers import COMPONENTS, examples, make_nlp, train

pytestmark = pytest.mark.slow  # components are trained

SCORES = {
    "entailment": "entailment_acc",
    "questions": "answer_f1",
    "roles": "roles_f",
    "coreference": "coref_f",
    "gap": "gap_f",
}


@pytest.mark.parametrize("task", COMPONENTS)
def test_learns(corpora: Path, weights: Path, task: str) -> None:
    nlp = make_nlp(corpora, task, "input and output", weights, dropout=0.0)
    batch = examples(nlp, corpora, task)[:12]
    losses = train(nlp, batch, 30)
    assert losses[-1] < 0.5 * losses[0]
    scores = nlp.evaluate([make_example(eg.reference) for eg in batch])
    assert scores[SCORES[task]] > 0.8, losses
    model = nlp.get_pipe(nlp.pipe_names[-1]).model
    mixes = [node for node in model.walk() if node.name == "elmo-scalar-mix"]
    assert mixes and all(mix.get_param("w").any() for mix in mixes)
