"""spaCy's listeners behind an elmo component: whose ``doc.tensor`` they would read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from spacy.language import Language
from spacy.pipeline.functions import DocCleaner
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.vocab import Vocab

from .pipeline_parts import list_components, model_nodes


class TensorListeners:
    """Finds listeners that would read another component's vectors than they learn from.

    spaCy's Tok2VecListener learns from the component that it names, but when it predicts it reads
    ``doc.tensor``, which is that of the last component before it. Where an elmo component does not
    know its pipeline, what spaCy has linked last stands for that.

    Attributes:
        linked: the components that spaCy has linked.
    """

    def __init__(self) -> None:
        self.linked = Scan("", [])
        self._listener_map: Any = None
        self._warned: set[str] = set()
        self._approved: list[tuple[str, Any]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_listener_map": None, "_approved": []}

    def start(self, elmo: Any) -> None:
        """Begin anew with each time that spaCy links, which it does with a new listener map."""
        if self._listener_map is not elmo.listener_map:
            self._listener_map = elmo.listener_map
            nlp = elmo.doc_layers.nlp()
            self.linked = Scan(elmo.name, _split([] if nlp is None else nlp.pipeline, elmo)[0])

    def link(self, component: Any, nlp: Language | None) -> None:
        """Take note of a component behind the elmo component; spaCy goes over them in order.

        A listener in it that would read other vectors than it learns from is warned about: an
        error would leave a pipeline that is half changed.
        """
        for conflict in self.linked.add(getattr(component, "name", ""), component, nlp):
            if conflict not in self._warned:
                self._warned.add(conflict)
                warnings.warn(conflict, UserWarning, stacklevel=4)

    def check(self, elmo: Any, vocab: Vocab) -> None:
        """Raise a ValueError if an enabled listener would read other vectors than it learns from.

        Args:
            elmo: the elmo component.
            vocab: of the Docs: those of another pipeline than the known one have another.
        """
        nlp, conflicts = elmo.doc_layers.nlp(), self.linked.conflicts
        if nlp is not None and nlp.vocab is vocab:
            pipeline = nlp.pipeline
            if pipeline == self._approved:  # once, as long as nothing is added or disabled
                return
            before, behind = _split(pipeline, elmo)
            if len(before) < len(pipeline):
                scan = Scan(elmo.name, before)
                for name, component in behind:
                    scan.add(name, component, nlp)
                conflicts = scan.conflicts
                self._approved = [] if conflicts else pipeline
        if conflicts:
            raise ValueError(" ".join(conflicts))


Components = Sequence[tuple[str, Any]]


def _split(pipeline: Components, elmo: Any) -> tuple[Components, Components]:
    """The components before and behind an elmo component; all and none if it is not there."""
    components = [component for _, component in pipeline]
    index = components.index(elmo) if elmo in components else len(components)
    return pipeline[:index], pipeline[index + 1 :]


class Scan:
    """One pass over the components behind an elmo component, in the pipeline's order.

    Args:
        elmo: the elmo component's name.
        before: the components before it, with their names.

    Attributes:
        writers: names of those that write ``doc.tensor``, from the elmo component on.
        conflicts: for each listener that would read the wrong vectors, what is wrong.
        is_cleaned: a ``doc_cleaner`` removes the elmo component's tensor.
    """

    def __init__(self, elmo: str, before: Components):
        self.elmo, self.writers = elmo, [elmo]
        self.before = [name for name, component in before if isinstance(component, Tok2Vec)]
        self.conflicts = [
            f"A listener in the component '{name}' learns from '{elmo}', which comes after it. Put "
            f"'{elmo}' before '{name}'."
            for name, component in before
            if elmo in {node.upstream_name for node in model_nodes(component, Tok2VecListener)}
        ]
        self.is_cleaned = False

    def add(self, name: str, component: Any, nlp: Language | None) -> list[str]:
        """Go over the next component behind it, and return its conflicts.

        Args:
            name, component: the component.
            nlp: the pipeline, if it is known.
        """
        upstreams = {node.upstream_name: 0 for node in model_nodes(component, Tok2VecListener)}
        found = [self._conflict(name, component, upstream, nlp) for upstream in upstreams]
        conflicts = [conflict for conflict in found if conflict]
        self.conflicts += conflicts
        if isinstance(component, Tok2Vec):
            self.writers.append(name)
        elif isinstance(component, DocCleaner) and len(self.writers) == 1:
            self.is_cleaned |= "tensor" in component.cfg["attrs"]
        return conflicts

    def _conflict(self, name: str, component: Any, upstream: str, nlp: Language | None) -> str:
        elmo, last, who = self.elmo, self.writers[-1], f"A listener in the component '{name}'"
        if upstream == "*":
            if last != elmo or not self.before:
                return ""
            return (
                f"{who} has upstream = \"*\", and both '{self.before[-1]}' and '{elmo}' make "
                f"vectors: it reads those of '{elmo}'. Set its upstream to the name of the one "
                f"that it should listen to."
            )
        if (upstream == elmo) == (last == elmo):
            return ""
        components = {} if nlp is None else dict(nlp.components)
        if nlp is not None and last == elmo and component in components.values():
            if not hasattr(components.get(upstream), "find_listeners"):
                return (
                    f'{who} has upstream = "{upstream}", but no component of that name makes '
                    f"vectors. {list_components(nlp)} Set its upstream to '{elmo}', or to the name "
                    f"of another one that makes vectors."
                )
        advice = (
            f"Put '{last}' before '{elmo}' or behind '{name}', or let '{name}' listen through "
            f"spacy-elmo.ElmoListener.v1."
        )
        if last == elmo:
            advice = (
                f"Put '{elmo}' before '{upstream}' or behind '{name}', or give '{name}' a copy of "
                f"its own before you add '{elmo}': nlp.replace_listeners('{upstream}', '{name}', "
                f"['model.tok2vec'])."
            )
        return (
            f"{who} learns from '{upstream}', but when it predicts it reads doc.tensor, which "
            f"'{last}' has replaced by then. {advice}"
        )
