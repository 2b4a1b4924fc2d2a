"""What is checked of an elmo component's settings together with those that listen to it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spacy.pipeline.tok2vec import Tok2VecListener
from thinc.api import Model

from ..util.files import is_of_data
from ..util.settings import check_choice
from ..weights.layout import Card
from .scalar_mix import MixSettings, check_parameters

VECTORS = ("auto", "elmo", "vocab")


def check_settings(vectors: str, model: Model) -> None:
    """Raise a ValueError for an unknown setting, or a model that is not `spacy-elmo.Elmo.v1`."""
    check_choice("The elmo component's setting vectors", vectors, VECTORS)
    if not {"bilm", "mix"} <= set(model.ref_names):
        raise ValueError(
            f"The elmo component's model must be the architecture spacy-elmo.Elmo.v1, found "
            f"'{model.name}'."
        )


def check_widths(elmo: Any) -> None:
    """Raise a ValueError if one of spaCy's listeners of an elmo component has another width."""
    width = elmo.shim.config.width
    listeners = [(name, each) for name, found in elmo.listener_map.items() for each in found]
    for component, listener in listeners:
        if isinstance(listener, Tok2VecListener) and listener.get_dim("nO") != width:
            advice = f"Set it to {width}."
            if listener.upstream_name == "*":
                advice += (
                    ' Or, if it should not listen to this component: its upstream is "*", any '
                    "that makes vectors; set that to the name of the one."
                )
            raise ValueError(
                f"The listener in the component '{component}' has the setting width = "
                f"{listener.get_dim('nO')}, but the vectors of '{elmo.name}' are "
                f"{width}-dimensional. {advice}"
            )


def warn_of_settings_without_effect(elmo: Any) -> None:
    """Warn of settings of an elmo component for learning where nothing learns."""
    mix: MixSettings = elmo.model.get_ref("mix").attrs["settings"]
    without_effect = []
    # Those of doc_layers may be disabled, or in another pipeline.
    if not (elmo.shim.settings.frozen or elmo.listener_map or elmo.doc_layers.listeners):
        without_effect.append(
            "model.frozen = false: no component listens to this one. Give the model of one a "
            "spacy-elmo.ElmoListener.v1, or set frozen = true"
        )
    if not elmo.tok2vec_listeners:
        without_effect += [
            f"model.mix.{setting} = {value}: no spacy.Tok2VecListener.v1 learns from this mix. A "
            f"spacy-elmo.ElmoListener.v1 has a mix of its own, and such settings"
            for setting, value in [("dropout", mix.dropout), ("l2", mix.l2)]
            if value
        ]
    for problem in without_effect:
        warnings.warn(
            f"A setting of the component '{elmo.name}' has no effect: {problem}.",
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


@contextmanager
def damage_reported(name: str, source: str, model: Model | None = None) -> Iterator[None]:
    """A context in which a component is deserialized.

    Whatever spaCy, thinc and their serializers raise for damaged data becomes one ValueError. So
    does what thinc does not notice: it leaves as they are the parts that the data lack.

    Args:
        name: the component's.
        source: what it is loaded from.
        model: that of the component, if it has one and it is loaded.
    """
    try:
        before = None if model is None else _parts(model)
        yield
        if model is None or before is None:
            return
        mix, shim, bilm = _parts(model)
        if mix is not before[0] or shim is not before[1] or bilm in (None, before[2]):
            raise ValueError("a part of its model is missing")
        check_parameters(mix, shim.config.n_layers + 1)
    except MemoryError:
        raise
    except Exception as error:
        if not is_of_data(error):
            raise
        raise ValueError(f"Cannot load the component '{name}' from {source}: {error}") from error


def _parts(model: Model) -> tuple[Any, Any, Any]:
    """The mix and the biLM's shim, which stay the same, and the biLM, which does not."""
    shim: Any = model.get_ref("bilm").shims[0]
    return model.get_ref("mix"), shim, shim.bilm if shim.is_loaded else None
