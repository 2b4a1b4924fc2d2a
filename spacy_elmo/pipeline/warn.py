"""What several components warn of."""

from __future__ import annotations

import warnings

from spacy.tokenizer import Tokenizer

from ..text.readers import BY_RULES
from ..weights.layout import Card


def warn_of_weights(card: Card, weights: object, lang: str, tokenizer: type | None = None) -> None:
    """Warn of weights that were trained on another language than a pipeline's; or on words by
    spaCy's rules if its tokenizer has others, and the other way round.

    Args:
        card: of the weights.
        weights: the setting.
        lang: code of the pipeline's language.
        tokenizer: class of its tokenizer; None if it does not matter.
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
