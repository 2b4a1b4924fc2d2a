"""Errors and warnings about a component and its listeners: what was found, and what to do."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spacy.language import Language
from spacy.vocab import Vocab

from ..util.files import is_of_data
from ..weights.downloads import published
from ..weights.find import known_names
from ..weights.layout import Card
from .pipeline_parts import find_component, list_components


def find_pipeline(listener: Any, vocab: Vocab) -> tuple[Language | None, str]:
    """The pipeline with a vocab that an `ElmoListener` is in, and how errors call its component.

    It is known by the elmo components that were before the listener in it.
    """
    known = [doc_layers.nlp for doc_layers in listener.before]
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


def no_weights(upstream: str) -> str:
    """The shape of a listener's layers is not known."""
    return (
        f"A component listens to '{upstream}', whose weights cannot be found. Set 'weights' in "
        f"[components.{upstream}.model] to weights that are there."
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


def retokenized(upstream: str) -> str:
    """A Doc has other tokens than the elmo component has read."""
    return (
        f"A Doc was retokenized since the elmo component '{upstream}' has read it, so its layers "
        f"no longer fit its tokens. Put the component that retokenizes before '{upstream}'."
    )


def not_in_batch(upstream: str) -> str:
    """A component learns from some Docs with its upstream, and from others without."""
    return (
        f"A component learns from Docs that are not in the batch that '{upstream}' was updated "
        f"with. Let it learn from the Docs of that batch only."
    )


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
        f"before it is sourced: source.replace_listeners('{upstream}', '{component or '…'}', "
        f"['model.tok2vec']); or train it again, from nlp.initialize() on."
    )


def _who(component: str) -> str:
    return f"The component '{component}'" if component else "A component"


def _label(facts: Any) -> str:
    facts = facts if isinstance(facts, dict) else {}
    mix = f", mix {str(facts['mix'])[:8]}" if facts.get("mix") else ""
    return f"the biLM '{facts.get('name')}' ({str(facts.get('bilm'))[:8]}{mix})"


def sourced_as(upstream: str, name: str) -> str:
    """A listener's elmo component was sourced under another name."""
    return (
        f"A component listens to '{upstream}', which was sourced as '{name}': when this pipeline "
        f"is saved and loaded, it will not find it. Source it as '{upstream}'."
    )


def other_width(component: str, listener: Any, elmo: str, width: int) -> str:
    """One of spaCy's listeners has another width than the vectors."""
    advice = f"Set it to {width}."
    if listener.upstream_name == "*":
        advice += (
            ' Or, if it should not listen to this component: its upstream is "*", any that makes '
            "vectors; set that to the name of the one."
        )
    return (
        f"The listener in the component '{component}' has the setting width = "
        f"{listener.get_dim('nO')}, but the vectors of '{elmo}' are {width}-dimensional. {advice}"
    )


def upstream_behind(component: str, elmo: str) -> str:
    """One of spaCy's listeners stands before its elmo component."""
    return (
        f"A listener in the component '{component}' learns from '{elmo}', which comes after it. "
        f"Put '{elmo}' before '{component}'."
    )


def two_upstreams(component: str, other: str, elmo: str) -> str:
    """One of spaCy's listeners may mean either of two components."""
    return (
        f"A listener in the component '{component}' has upstream = \"*\", and both '{other}' and "
        f"'{elmo}' make vectors: it reads those of '{elmo}'. Set its upstream to the name of the "
        f"one that it should listen to."
    )


def no_upstream(component: str, upstream: str, elmo: str, nlp: Language) -> str:
    """One of spaCy's listeners names a component that makes no vectors."""
    return (
        f"A listener in the component '{component}' has upstream = \"{upstream}\", but no "
        f"component of that name makes vectors. {list_components(nlp)} Set its upstream to "
        f"'{elmo}', or to the name of another one that makes vectors."
    )


def tensor_replaced(component: str, upstream: str, elmo: str, last: str) -> str:
    """One of spaCy's listeners would read the vectors of another component than its upstream.

    Args:
        component, upstream: the listener's.
        elmo: name of the elmo component.
        last: name of the component whose ``doc.tensor`` it would read.
    """
    advice = (
        f"Put '{last}' before '{elmo}' or behind '{component}', or let '{component}' listen "
        f"through spacy-elmo.ElmoListener.v1."
    )
    if last == elmo:
        advice = (
            f"Put '{elmo}' before '{upstream}' or behind '{component}', or give '{component}' a "
            f"copy of its own before you add '{elmo}': nlp.replace_listeners('{upstream}', "
            f"'{component}', ['model.tok2vec'])."
        )
    return (
        f"A listener in the component '{component}' learns from '{upstream}', but when it predicts "
        f"it reads doc.tensor, which '{last}' has replaced by then. {advice}"
    )


def nobody_listens(elmo: str) -> str:
    """A biLM is to be trained, and has no listeners."""
    return (
        f"A setting of the component '{elmo}' has no effect: model.frozen = false: no component "
        f"listens to this one. Give the model of one a spacy-elmo.ElmoListener.v1, or set frozen = "
        f"true."
    )


def mix_not_learned(elmo: str, setting: str, value: float) -> str:
    """A setting of the component's own mix, with which no listener learns."""
    return (
        f"A setting of the component '{elmo}' has no effect: model.mix.{setting} = {value}: no "
        f"spacy.Tok2VecListener.v1 learns from this mix. A spacy-elmo.ElmoListener.v1 has a mix of "
        f"its own, and such settings."
    )


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
    elsewhere = [name for name, each in published().items() if each.lang == lang]
    advice = f"Set 'weights' in {block} to "
    if here:
        advice += f"{' or '.join(map(repr, here))}."
    elif elsewhere:
        advice += (
            f"{' or '.join(map(repr, elsewhere))}, after `python -m spacy elmo download "
            f"{elsewhere[0]}`."
        )
    else:
        advice += f"a biLM of '{lang}', or train one with `python -m spacy elmo pretrain`."
    warnings.warn(
        f"The pipeline's language is '{lang}', but the ELMo weights '{weights}' were trained on "
        f"'{weights_lang}': they will be of little use. {advice}",
        UserWarning,
        stacklevel=3,
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
