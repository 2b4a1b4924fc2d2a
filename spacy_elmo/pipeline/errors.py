"""Errors and warnings that several components share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from spacy.tokenizer import Tokenizer

from ..text.readers import BY_RULES
from ..util.files import is_of_data
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


@contextmanager
def damage_reported(name: str, source: str) -> Iterator[None]:
    """A context in which a component is deserialized.

    Whatever spaCy, thinc and their serializers raise for damaged data becomes one ValueError.

    Args:
        name: the component's.
        source: what it is loaded from.
    """
    try:
        yield
    except Exception as error:
        if not is_of_data(error):
            raise
        raise ValueError(f"Cannot load the component '{name}' from {source}: {error}") from error
