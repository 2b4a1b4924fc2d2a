"""Errors and warnings that several components share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from spacy.tokens import Doc

from ..util.files import is_of_data
from ..weights.catalogue import in_repository, published
from ..weights.find import known_names
from ..weights.layout import Card


def check_vectors(architecture: str, learned: int | None, docs: Sequence[Doc]) -> None:
    """Raise a ValueError if static vectors are not as wide as those a model has learned from.

    Args:
        architecture: of the model.
        learned: the width that it knows.
        docs: of the pipeline.
    """
    found = docs[0].vocab.vectors_length if docs else learned
    if found != learned:
        raise ValueError(
            f"The model {architecture} has learned from static vectors of width {learned}, but "
            f"those of the pipeline have {found}. Set initialize.vectors to the pipeline it was "
            f"trained in, or in Python share its vocabulary: spacy.blank('en', vocab=source.vocab)."
        )


def warn_of_language(
    lang: str, card: Card, weights: object, block: str = "the elmo model's block"
) -> None:
    """Warn of weights of another language than a pipeline.

    Args:
        lang: the pipeline's.
        card: of the weights.
        weights: the setting.
        block: of the config that it is in.
    """
    trained = card.meta.get("lang")
    if not lang or not trained or lang == trained or "xx" in (lang, trained):
        return
    # A pipeline reads words as they stand, not their lemmas.
    known = [(name, each) for name, each in published().items() if each.lang == lang]
    names = [name for name, each in known if not each.text.endswith("lemmas")]
    options = list(map(repr, known_names(lang)))
    if not options:
        if directory := in_repository(lang):
            options.append(f"the directory {directory} of spacy-elmo's repository")
        options += [f"'{name}' (`python -m spacy elmo download {name}`)" for name in names]
    advice = (
        " or ".join(options) or f"a biLM of '{lang}', trained by `python -m spacy elmo pretrain`"
    )
    warnings.warn(
        f"The pipeline's language is '{lang}', but the ELMo weights '{weights}' were trained on "
        f"'{trained}': they will be of little use. Set 'weights' in {block} to {advice}.",
        stacklevel=2,  # the callers' callers are decorators
    )


def warn_of_tokenizer(lang: str, own: str, card: Card, weights: object) -> None:
    """Warn of a pipeline that has its language's own tokenizer, if the weights had another one.

    Args:
        lang: code of the pipeline's language.
        own: registered name of its tokenizer.
        card: of the weights.
        weights: the setting.
    """
    trained = card.meta.get("tokenizer")
    if trained and lang == card.meta.get("lang") and own != trained:
        warnings.warn(
            f"The pipeline's tokenizer is '{own}', but the ELMo weights '{weights}' were trained "
            f"on the words of '{trained}'. For texts, set @tokenizers in [nlp.tokenizer] to that, "
            f"or take weights that were trained with the pipeline's tokenizer.",
            stacklevel=2,  # the callers' callers are decorators
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
