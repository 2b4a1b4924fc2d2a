"""The paper's tasks: importing this registers the components that spaCy has not."""

from . import coreference, corpus, entailment, questions, roles

__all__ = ["coreference", "corpus", "entailment", "questions", "roles"]
