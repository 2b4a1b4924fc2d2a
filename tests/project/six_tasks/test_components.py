"""The four components: what they learn and predict, alone and in batches, saved and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import spacy
from paper_tasks.corpus import make_example
from spacy.tokens import Doc

from .helpers import COMPONENTS, examples, make_nlp, train, unannotated

pytestmark = pytest.mark.slow  # components are trained

TASKS = ("entailment", "questions", "roles", "coreference")
SCORES = {
    "entailment": "entailment_acc",
    "questions": "answer_f1",
    "roles": "roles_f",
    "coreference": "coref_f",
    "gap": "gap_f",
}


def predictions(doc: Doc) -> dict[str, Any]:
    """All that the components set."""
    spans = {
        key: [(span.start, span.end, span.label_, span.id) for span in group]
        for key, group in doc.spans.items()
    }
    return {**spans, "entailment": doc._.entailment}


def assert_the_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    ours, theirs = dict(ours), dict(theirs)
    classes = theirs.pop("entailment")
    assert ours.pop("entailment") == (classes and pytest.approx(classes, abs=1e-5))
    assert ours == theirs


@pytest.mark.parametrize("arm", ["without", "input and output"])
@pytest.mark.parametrize("task", COMPONENTS)
def test_learns(corpora: Path, weights: Path, task: str, arm: str) -> None:
    nlp = make_nlp(corpora, task, arm, weights, dropout=0.0)
    batch = examples(nlp, corpora, task)[:12]
    losses = train(nlp, batch, 30)
    assert losses[-1] < 0.5 * losses[0]
    scores = nlp.evaluate([make_example(eg.reference) for eg in batch])
    assert scores[SCORES[task]] > 0.8, losses
    if arm != "without":
        mixes = [node for node in nlp.get_pipe(nlp.pipe_names[-1]).model.walk()
                 if node.name == "elmo-scalar-mix"]  # fmt: skip
        assert mixes and all(mix.get_param("w").any() for mix in mixes)


@pytest.mark.parametrize("task", TASKS)
def test_saved(corpora: Path, weights: Path, task: str, tmp_path: Path) -> None:
    nlp = make_nlp(corpora, task, "input", weights)
    train(nlp, examples(nlp, corpora, task)[:4], 2)
    nlp.to_disk(tmp_path / "saved")
    docs = [predictions(nlp(doc)) for doc in unannotated(nlp, corpora, task)]
    loaded = spacy.load(tmp_path / "saved")
    copy = spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())
    for other in (loaded, copy):
        found = [predictions(other(doc)) for doc in unannotated(other, corpora, task)]
        for ours, theirs in zip(found, docs, strict=True):
            assert_the_same(ours, theirs)
    component = nlp.get_pipe(COMPONENTS[task])
    assert copy.get_pipe(COMPONENTS[task]).cfg == component.cfg
    assert len(loaded("")) == 0
