"""The tokenizer that belongs to a biLM."""

from __future__ import annotations

from spacy.language import Language

from ..bilm.base_weights import Weights
from ..readers import blank


def blank_pipeline(
    weights: Weights, lang: str | None = None, default: str | None = None
) -> Language:
    """A blank pipeline for the language and tokenizer that a biLM was trained with.

    Args:
        weights: whose card may name both.
        lang: code of another language, with its own tokenizer.
        default: language if neither the card nor ``lang`` names one.

    Raises:
        ValueError: the language is not known, spaCy does not support it, or its tokenizer needs
            another package.
    """
    meta = weights.card().meta
    if "lang" in meta and lang in (None, meta["lang"]):
        return blank(meta["lang"], meta.get("tokenizer"))
    lang = lang or default
    if lang is None:
        raise ValueError(
            f"The card of the weights '{weights.where}' does not name their language, which decides "
            f"how text is tokenized. Give it with --lang."
        )
    return blank(lang)
