"""Warnings that several components share."""

from __future__ import annotations

import warnings

from spacy.tokenizer import Tokenizer

from ..text.readers import BY_RULES
from ..weights.layout import Card


def warn_of_language(lang: str, card: Card, weights: object) -> None:
    """Warn of weights of another language than a pipeline.

    Args:
        lang: the pipeline's.
        card: of the weights.
        weights: the setting.
    """
    trained = card.meta.get("lang")
    if lang and trained and lang != trained and "xx" not in (lang, trained):
        warnings.warn(
            f"The pipeline's language is '{lang}', but the ELMo weights '{weights}' were trained "
            f"on '{trained}': they will be of little use. Set 'weights' to weights of '{lang}': "
            f"`python -m spacy elmo download` lists some, and `pretrain` makes them.",
            stacklevel=2,
        )


def warn_of_tokenizer(lang: str, own: type, card: Card, weights: object) -> None:
    """Warn of a tokenizer that does not divide by spaCy's rules, if that of the weights did, or the
    other way round.

    Args:
        lang: code of the pipeline's language.
        own: class of its tokenizer.
        card: of the weights.
        weights: the setting.
    """
    trained = card.meta.get("tokenizer")
    is_other = issubclass(own, Tokenizer) != (trained == BY_RULES)
    if trained and lang == card.meta.get("lang") and is_other:
        warnings.warn(
            f"The pipeline's tokenizer is a {own.__name__}, but the ELMo weights '{weights}' were "
            f"trained on the words of '{trained}'. For texts, set @tokenizers in [nlp.tokenizer] "
            f"to that, or take weights that were trained with the pipeline's tokenizer.",
            stacklevel=2,
        )
