"""The tokenizer that goes with weights."""

from __future__ import annotations

import spacy
from spacy.language import Language

from ..bilm.layout import Weights


def blank_pipeline(weights: Weights, lang: str | None) -> Language:
    """An empty pipeline of a language, by default that of the weights.

    Raises:
        ValueError: the weights do not name their language, and none is given.
        ImportError: spaCy does not know the language, or it needs another package.
    """
    lang = lang or weights.card().meta.get("lang")
    if not lang:
        raise ValueError(
            f"The weights '{weights.where}' do not name their language, so it is not known how "
            f"their text is tokenized: give it with --lang."
        )
    return spacy.blank(lang)
