"""Why a listener has no layers of a Doc, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spacy.language import Language
from spacy.vocab import Vocab
from thinc.api import Model

from .doc_layers import DocLayers
from .model_nodes import list_components, model_nodes


def find_pipeline(
    listener: Model, shared: Iterable[DocLayers], vocab: Vocab
) -> tuple[Language | None, str]:
    """The pipeline that a listener is in, and the name of its component there.

    Args:
        listener: the listener.
        shared: of the elmo components that were before it in any pipeline.
        vocab: that of the pipeline.

    Returns:
        None and an empty name if the pipeline is not known.
    """
    for doc_layers in shared:
        nlp = doc_layers.nlp
        if nlp is not None and nlp.vocab is vocab:
            for name, component in nlp.components:
                if listener in model_nodes(component, Model):
                    return nlp, name
    return None, ""


def not_linked(listener: Any, vocab: Vocab) -> str:
    """The error that there is no elmo component of the name of the upstream.

    Args:
        listener: an `ElmoListener`.
        vocab: of the pipeline that it is in.
    """
    upstream = listener.upstream
    nlp, component = find_pipeline(listener, listener.before, vocab)
    who = f"The component '{component}'" if component else "A component"
    pipeline = "" if nlp is None else f" {list_components(nlp)}"
    return (
        f"{who} listens to '{upstream}', but there is no elmo component of that name before it."
        f'{pipeline} Add one, nlp.add_pipe("elmo", name="{upstream}", first=True), or, if the '
        f"component was sourced, source '{upstream}' too; or set 'upstream' in its "
        f"spacy-elmo.ElmoListener.v1 to the name of an elmo component before it."
    )


def not_read(listener: Any, vocab: Vocab, is_train: bool) -> str:
    """The error that no component that the listener is linked to has read a Doc.

    Args:
        listener: an `ElmoListener`.
        vocab: of the Doc.
        is_train: the component learns from the Doc.
    """
    upstream = listener.upstream
    nlp, component = find_pipeline(listener, listener.before, vocab)
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
    who = f"The component '{component}'" if component else "A component"
    return f"{who} listens to '{upstream}', which has not read the Doc: {cause}"


def sourced_as(upstream: str, name: str) -> str:
    """The warning that a listener's component was sourced under another name."""
    return (
        f"A component listens to '{upstream}', which was sourced as '{name}': when this pipeline "
        f"is saved and loaded, it will not find it. Source it as '{upstream}'."
    )
