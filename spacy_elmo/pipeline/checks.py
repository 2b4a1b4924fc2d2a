"""What is checked of an elmo component together with those that listen to it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener

from ..bilm.layout import Card
from .scalar_mix import Settings

Listeners = Mapping[str, Sequence[Any]]  # by the components that they are in


def check_widths(name: str, width: int, listeners: Listeners) -> None:
    """Refuse spaCy's listeners that expect vectors of another size.

    Args:
        name: of the elmo component.
        width: size 2P of its vectors.
        listeners: those that listen to it.

    Raises:
        ValueError: one has another width.
    """
    for component, of_component in listeners.items():
        for listener in of_component:
            if isinstance(listener, Tok2VecListener) and listener.get_dim("nO") != width:
                advice = f"Set it to {width}."
                if listener.upstream_name == "*":
                    advice += (
                        " Or, if it is not meant to listen to this component: its upstream is "
                        '"*", any that makes vectors; set that to the name of the one.'
                    )
                raise ValueError(
                    f"The listener in the component '{component}' has the setting width = "
                    f"{listener.get_dim('nO')}, but the vectors of '{name}' have {width} numbers. "
                    f"{advice}"
                )


def warn_of_other_tensors(
    name: str, pipeline: Sequence[tuple[str, Any]], listeners: Listeners
) -> None:
    """Say which of spaCy's listeners learn from this component, but predict from another's tensor.

    Args:
        name: of the elmo component.
        pipeline: all components with their names, in order.
        listeners: those that listen to it.
    """
    names = [other for other, _ in pipeline]
    for component, of_component in listeners.items():
        if component not in names:
            continue
        before = pipeline[: names.index(component)]
        writers = [other for other, found in before if isinstance(found, Tok2Vec)]
        for listener in of_component:
            if not isinstance(listener, Tok2VecListener) or set(writers) <= {name}:
                continue
            problem = ""
            if writers[-1] != name:
                problem = (
                    f"reads doc.tensor when it predicts, which '{writers[-1]}' has written by "
                    f"then. Put '{writers[-1]}' elsewhere, or listen through "
                    f"spacy-elmo.ElmoListener.v1"
                )
            elif listener.upstream_name == "*":
                problem = (
                    f"has upstream = \"*\", and '{name}' is not the only one that makes vectors. "
                    f"Set it to the name of the one that it is to listen to"
                )
            if problem:
                warnings.warn(
                    f"A listener in the component '{component}' learns from '{name}', but "
                    f"{problem}.",
                    UserWarning,
                    stacklevel=3,
                )


def warn_of_settings_without_effect(
    name: str, frozen: bool, mix: Settings, listeners: Listeners, elsewhere: bool
) -> None:
    """Say which settings are about learning where nothing can be learned.

    Args:
        name: of the elmo component.
        frozen: its biLM does not learn.
        mix: settings of its own mix.
        listeners: those that listen to it.
        elsewhere: others do, that are disabled or in another pipeline.
    """
    without_effect = []
    if not (frozen or listeners or elsewhere):
        without_effect.append(
            "model.frozen = false: no component listens to this one. Give the model of one a "
            "spacy-elmo.ElmoListener.v1, or set frozen = true"
        )
    every = [listener for of_component in listeners.values() for listener in of_component]
    if not any(isinstance(listener, Tok2VecListener) for listener in every):
        without_effect += [
            f"model.mix.{setting} = {value}: no spacy.Tok2VecListener.v1 learns from this mix. A "
            f"spacy-elmo.ElmoListener.v1 has a mix of its own, and such settings"
            for setting, value in [("dropout", mix.dropout), ("l2", mix.l2)]
            if value
        ]
    for problem in without_effect:
        warnings.warn(
            f"A setting of the component '{name}' has no effect: {problem}.",
            UserWarning,
            stacklevel=3,
        )


def warn_of_language(lang: str, card: Card, weights: object, block: str) -> bool:
    """Warn of weights of another language than a pipeline; true if they are.

    Args:
        lang: the pipeline's.
        card: of the weights.
        weights: the setting.
        block: of the config that it is in.
    """
    weights_lang = card.meta.get("lang")
    if not lang or not weights_lang or lang == weights_lang or "xx" in (lang, weights_lang):
        return False
    warnings.warn(
        f"The pipeline's language is '{lang}', but the ELMo weights '{weights}' were trained on "
        f"'{weights_lang}': they will be of little use. Set 'weights' in {block} to a biLM of "
        f"'{lang}', or train one with `python -m spacy elmo pretrain`.",
        UserWarning,
        stacklevel=3,
    )
    return True
