"""Warnings about weights that do not fit a pipeline."""

from __future__ import annotations

import warnings

from spacy.tokenizer import Tokenizer

from ..text.readers import BY_RULES
from ..weights.layout import Card


def warn_of_weights(card: Card, weights: object, lang: str, tokenizer: type | None = None) -> None:
    """Warn if weights were trained on another language, or with another kind of tokenizer: only one
    of the two is spaCy's rule-based one.

    Args:
        card: the card of the weights.
        weights: the setting.
        lang: code of the pipeline's language.
        tokenizer: class of the pipeline's tokenizer; None if it does not matter.
    """
    trained, rules = card.meta.get("lang"), card.meta.get("tokenizer")
    if lang and trained and lang != trained and "xx" not in (lang, trained):
        warnings.warn(
            f"The pipeline's language is '{lang}', but the ELMo weights '{weights}' were trained "
            f"on '{trained}': they will be of little use. Set 'weights' to weights of '{lang}': "
            f"`python -m spacy elmo download` lists some, and `pretrain` makes them.",
            stacklevel=2,
        )
    is_known = rules and lang == trained
    if tokenizer and is_known and issubclass(tokenizer, Tokenizer) != (rules == BY_RULES):
        warnings.warn(
            f"The pipeline's tokenizer is a {tokenizer.__name__}, but the ELMo weights '{weights}' "
            f"were trained on the words of '{rules}'. For texts, set @tokenizers in "
            f"[nlp.tokenizer] to that, or take weights that were trained with the pipeline's "
            f"tokenizer.",
            stacklevel=2,
        )
