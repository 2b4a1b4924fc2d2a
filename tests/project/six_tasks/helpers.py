"""Small pipelines of each task, on our own sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paper_tasks.arms import make_config
from paper_tasks.corpus import Corpus, make_example
from paper_tasks.datasets import write_corpus
from spacy.language import Language
from spacy.training import Example
from spacy.util import fix_random_seed, load_model_from_config

TINY = Path(__file__).parents[3] / "project" / "six_tasks" / "tiny"
COMPONENTS = {
    "entailment": "entailment",
    "questions": "question_answering",
    "roles": "semantic_roles",
    "coreference": "coreference",
    "gap": "coreference",
}


def write_tiny(folder: Path, task: str) -> Path:
    write_corpus(folder / task, task, TINY)
    return folder / task


def make_nlp(
    corpora: Path, task: str, arm: str = "without", weights: str = "en_sm", **settings: Any
) -> Language:
    """An initialized pipeline.

    Args:
        corpora: with a folder for the task.
        task, arm, weights: see `make_config`.
        settings: of the task's model.
    """
    fix_random_seed(0)
    files = {split: corpora / task / f"{split}.spacy" for split in ("train", "dev")}
    config = make_config(task, arm, weights=str(weights), **files)
    config["components"][COMPONENTS[task]]["model"].update(settings)
    nlp = load_model_from_config(config)
    nlp.initialize(lambda: examples(nlp, corpora, task))
    return nlp


def examples(nlp: Language, corpora: Path, task: str, split: str = "train") -> list[Example]:
    return list(Corpus(str(corpora / task / f"{split}.spacy"))(nlp))


def train(nlp: Language, batch: list[Example], steps: int, **settings: Any) -> list[float]:
    """The losses of some steps on the same examples."""
    optimizer, found = nlp.create_optimizer(), []
    optimizer.learn_rate = 0.005
    name = nlp.pipe_names[-1]
    for _ in range(steps):
        losses: dict[str, float] = {}
        fresh = [make_example(eg.reference) for eg in batch]
        nlp.update(fresh, sgd=optimizer, losses=losses, **settings)
        found.append(losses[name])
    return found
