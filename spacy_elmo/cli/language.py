"""The tokenizer that goes with weights."""

from __future__ import annotations

from spacy.language import Language

from ..bilm.layout import Weights
from ..readers import blank


def blank_pipeline(weights: Weights, lang: str | None) -> Language:
    """An empty pipeline of a language, by default that of the weights.

    Raises:
        ValueError: the weights do not name their language, and none is given; or spaCy does not
            know it, or it needs another package.
    """
    meta = weights.card().meta
    if "lang" in meta and lang in (None, meta["lang"]):
        return blank(meta["lang"], meta.get("tokenizer"))
    if not lang:
        raise ValueError(
            f"The weights '{weights.where}' do not name their language, so it is not known how "
            f"their text is tokenized: give it with --lang."
        )
    return blank(lang)
