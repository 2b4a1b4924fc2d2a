"""Errors and warnings about a component and its listeners: what was found, and what to do."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..util.files import is_of_data
from ..weights.catalogue import in_repository, published
from ..weights.find import known_names
from ..weights.layout import Card
from .pipeline_parts import find_component, list_components


def find_pipeline(listener: Any, vocab: Vocab) -> tuple[Language | None, str]:
    """The pipeline with a vocab that an `ElmoListener` is in, and how errors call its component.

    It is known by the elmo components that were before the listener in it.
    """
    known = [doc_layers.nlp() for doc_layers in listener.before]
    nlp, name = find_component(listener, [nlp for nlp in known if nlp and nlp.vocab is vocab])
    return nlp, name


def not_linked(listener: Any, vocab: Vocab) -> str:
    """No elmo component before an `ElmoListener` has the name of its upstream."""
    upstream = listener.upstream
    nlp, component = find_pipeline(listener, vocab)
    pipeline = "" if nlp is None else f" {list_components(nlp)}"
    return (
        f"{_who(component)} listens to '{upstream}', but there is no elmo component of that name "
        f'before it.{pipeline} Add one, nlp.add_pipe("elmo", name="{upstream}", first=True), or, '
        f"if the component was sourced, source '{upstream}' too; or set 'upstream' in its "
        f"spacy-elmo.ElmoListener.v1 to the name of an elmo component before it."
    )


def not_read(listener: Any, vocab: Vocab, is_train: bool) -> str:
    """No component that an `ElmoListener` is linked to has read a Doc.

    Args:
        listener: the listener.
        vocab: of the Doc.
        is_train: the component learns from the Doc.
    """
    upstream = listener.upstream
    nlp, component = find_pipeline(listener, vocab)
    names = [] if nlp is None else nlp.component_names
    if not listener.links or (nlp is not None and upstream not in names):
        return not_linked(listener, vocab)
    if nlp is None:
        cause = (
            f"the Doc is not of the pipeline that '{upstream}' is in. If the component was "
            f"sourced, source '{upstream}' too, before it: nlp.add_pipe('{upstream}', source=…, "
            f"first=True)."
        )
    elif upstream in nlp.disabled:
        cause = f"it is disabled. Enable it: nlp.enable_pipe('{upstream}')."
    elif names.index(upstream) > names.index(component):
        cause = f"it comes after '{component}'. Put it before."
    elif is_train:
        cause = (
            f"if '{upstream}' is one of the frozen_components of the training, add it to the "
            f"annotating_components too."
        )
    else:
        cause = (
            "run the pipeline as a whole. (A component that applies its model to parts of Docs, as "
            "the entity_linker does, can listen through spacy.Tok2VecListener.v1.)"
        )
    return f"{_who(component)} listens to '{upstream}', which has not read the Doc: {cause}"


def other_bilm(component: str, upstream: str, known: Any, now: dict[str, str]) -> str:
    """A listener has learned from another biLM.

    Args:
        component: name of the listener's component, empty if that is not known.
        upstream: name of the elmo component.
        known, now: `LearnedFrom.facts` of what it has learned from, and of what there is.
    """
    return (
        f"{_who(component)} has learned from {_label(known)}, but '{upstream}' has {_label(now)}. "
        f"Source '{upstream}' from the pipeline of the component too; or give the component a copy "
        f"before it is sourced: source.replace_listeners('{upstream}', '{component or '…'}', …), "
        f"with the paths of all its listeners; or train it again, from nlp.initialize() on."
    )


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
            f"those of the pipeline have {found}. Take the vectors along from the pipeline it was "
            f"trained in: set initialize.vectors to that, or in Python make the new one with its "
            f"vocabulary, as in spacy.blank('en', vocab=source.vocab)."
        )


def _who(component: str) -> str:
    return f"The component '{component}'" if component else "A component"


def _label(facts: Any) -> str:
    facts = facts if isinstance(facts, dict) else {}
    mix = f", mix {str(facts['mix'])[:8]}" if facts.get("mix") else ""
    return f"the biLM '{facts.get('name')}' ({str(facts.get('bilm'))[:8]}{mix})"


def warn_of_language(lang: str, card: Card, weights: object, block: str) -> None:
    """Warn of weights of another language than a pipeline.

    Args:
        lang: the pipeline's.
        card: of the weights.
        weights: the setting.
        block: of the config that it is in.
    """
    weights_lang = card.meta.get("lang")
    if not lang or not weights_lang or lang == weights_lang or "xx" in (lang, weights_lang):
        return
    here = known_names(lang)
    # A pipeline reads words as they stand, not their lemmas.
    known = [(name, each) for name, each in published().items() if each.lang == lang]
    elsewhere = [name for name, each in known if not each.text.endswith("lemmas")]
    advice = f"Set 'weights' in {block} to "
    found = []
    if here:
        found.append(" or ".join(map(repr, here)))
    else:
        if directory := in_repository(lang):
            found.append(f"the directory {directory} of spacy-elmo's repository")
        if elsewhere:
            names = " or ".join(map(repr, elsewhere))
            found.append(f"{names}, after `python -m spacy elmo download {elsewhere[0]}`")
    train = f"a biLM of '{lang}', or train one with `python -m spacy elmo pretrain`"
    advice += f"{', or to '.join(found) or train}."
    warnings.warn(
        f"The pipeline's language is '{lang}', but the ELMo weights '{weights}' were trained on "
        f"'{weights_lang}': they will be of little use. {advice}",
        UserWarning,
        stacklevel=2,  # the callers' callers are decorators
    )


def warn_of_tokenizer(language: type[Language], own: str, card: Card, weights: object) -> None:
    """Warn of a pipeline that has its language's own tokenizer, if the weights had another one.

    Args:
        language: class of the pipeline.
        own: registered name of its tokenizer.
        card: of the weights.
        weights: the setting.
    """
    trained, default = card.meta.get("tokenizer"), language.default_config["nlp"]["tokenizer"]
    # Another one than the language's, which the user has chosen, may make the same words.
    if (
        trained
        and language.lang == card.meta.get("lang")
        and own == default["@tokenizers"] != trained
    ):
        warnings.warn(
            f"The pipeline's tokenizer is '{own}', but the ELMo weights '{weights}' were trained "
            f"on the words of '{trained}'. For texts, set @tokenizers in [nlp.tokenizer] to that, "
            f"or take weights that were trained with the pipeline's tokenizer.",
            UserWarning,
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
