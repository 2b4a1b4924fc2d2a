"""The paper's tasks: importing this registers the components that spaCy has not."""

from . import corpus, coreference, entailment, questions, roles

__all__ = ["coreference", "corpus", "entailment", "questions", "roles"]
