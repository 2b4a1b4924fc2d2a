"""Components behind an elmo component that would read another's ``doc.tensor``."""

from __future__ import annotations

import warnings
from typing import Any
from weakref import ref

from spacy.language import Language
from spacy.pipeline.functions import DocCleaner
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.vocab import Vocab

from .model_nodes import list_components, model_nodes


class TensorConflicts:
    """Finds listeners that would read another component's vectors than they learn from.

    spaCy's Tok2VecListener learns from the component that it names, but when it predicts it reads
    ``doc.tensor``, which is that of the last component before it.

    Attributes:
        nlp: the pipeline. A component that was sourced, copied or unpickled does not know the
            one that it is in; what spaCy has linked last stands for that.
    """

    def __init__(self) -> None:
        self.nlp = None
        self._linked = Scan("", [])
        self._listener_map: Any = None
        self._warned: set[str] = set()
        self._approved: list[tuple[str, Any]] = []

    @property
    def nlp(self) -> Language | None:
        """The pipeline, as long as it exists."""
        return None if self._nlp is None else self._nlp()

    @nlp.setter
    def nlp(self, nlp: Language | None) -> None:
        self._nlp = None if nlp is None else ref(nlp)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_nlp": None, "_listener_map": None, "_approved": []}

    def link(self, elmo: Any, component: Any) -> None:
        """Take note of a component behind the elmo component; spaCy goes over them in order.

        A listener in it that would read other vectors than it learns from is warned about: an
        error would leave a pipeline that is half changed.
        """
        self._start(elmo)
        for conflict in self._linked.add(getattr(component, "name", ""), component, self.nlp):
            if conflict not in self._warned:
                self._warned.add(conflict)
                warnings.warn(conflict, UserWarning, stacklevel=4)

    def writes_last(self, elmo: Any) -> bool:
        """Whether no component linked so far replaces the elmo component's ``doc.tensor``."""
        self._start(elmo)
        return len(self._linked.writers) == 1

    def _start(self, elmo: Any) -> None:
        if self._listener_map is not elmo.listener_map:  # a new one each time that spaCy links
            self._listener_map = elmo.listener_map
            self._linked = Scan(elmo.name, self._writers_before(elmo))

    @property
    def is_cleaned(self) -> bool:
        """Whether a ``doc_cleaner`` removes the component's ``doc.tensor``."""
        return self._linked.is_cleaned

    def check(self, elmo: Any, vocab: Vocab) -> None:
        """Raise a ValueError if an enabled listener would read other vectors than it learns from.

        Args:
            elmo: the elmo component.
            vocab: of the Docs: those of another pipeline than the known one have another.
        """
        nlp = self.nlp
        conflicts = self._linked.conflicts
        if nlp is not None and nlp.vocab is vocab and any(p is elmo for _, p in nlp.pipeline):
            pipeline = nlp.pipeline
            if pipeline == self._approved:
                return
            scan = Scan(elmo.name, self._writers_before(elmo))
            index = [p for _, p in pipeline].index(elmo)
            for name, component in pipeline[:index]:
                scan.add_before(name, component)
            for name, component in pipeline[index + 1 :]:
                scan.add(name, component, nlp)
            conflicts = scan.conflicts
            self._approved = [] if conflicts else pipeline
        if conflicts:
            raise ValueError(" ".join(conflicts))

    def _writers_before(self, elmo: Any) -> list[str]:
        pipeline = [] if self.nlp is None else self.nlp.pipeline
        components = [component for _, component in pipeline]
        end = components.index(elmo) if elmo in components else 0
        return [name for name, component in pipeline[:end] if isinstance(component, Tok2Vec)]


class Scan:
    """One pass over the components behind an elmo component, in the pipeline's order.

    Args:
        elmo: the elmo component's name.
        before: names of the components before it that write ``doc.tensor``.

    Attributes:
        writers: names of those that do, from the elmo component on.
        conflicts: for each listener that would read the wrong vectors, what is wrong.
        is_cleaned: a ``doc_cleaner`` removes the elmo component's tensor.
    """

    def __init__(self, elmo: str, before: list[str]):
        self.elmo, self.before = elmo, before
        self.writers = [elmo]
        self.conflicts: list[str] = []
        self.is_cleaned = False

    def add_before(self, name: str, component: Any) -> None:
        """Go over a component before the elmo component."""
        upstreams = {node.upstream_name for node in model_nodes(component, Tok2VecListener)}
        if self.elmo in upstreams:
            self.conflicts.append(
                f"A listener in the component '{name}' learns from '{self.elmo}', which comes "
                f"after it. Put '{self.elmo}' before '{name}'."
            )

    def add(self, name: str, component: Any, nlp: Language | None) -> list[str]:
        """Go over the next component behind it, and return its conflicts.

        Args:
            name, component: the component.
            nlp: the pipeline, if it is known.
        """
        listeners = model_nodes(component, Tok2VecListener)
        known = nlp if nlp and any(found is component for _, found in nlp.components) else None
        found = [self._conflict(name, node.upstream_name, known) for node in listeners]
        conflicts = list(dict.fromkeys(conflict for conflict in found if conflict))
        self.conflicts += conflicts
        if isinstance(component, Tok2Vec):
            self.writers.append(name)
        if isinstance(component, DocCleaner) and len(self.writers) == 1:
            self.is_cleaned |= "tensor" in component.cfg["attrs"]
        return conflicts

    def _conflict(self, name: str, upstream: str, nlp: Language | None) -> str:
        elmo, last = self.elmo, self.writers[-1]
        if upstream == "*" and last == elmo and self.before:
            return (
                f"A listener in the component '{name}' has upstream = \"*\", and both "
                f"'{self.before[-1]}' and '{elmo}' make vectors: it reads those of '{elmo}'. Set "
                f"its upstream to the name of the one that it should listen to."
            )
        advice = ""
        if upstream == elmo and last != elmo:
            advice = (
                f"Put '{last}' before '{elmo}' or behind '{name}', or let '{name}' listen through "
                f"spacy-elmo.ElmoListener.v1."
            )
        elif upstream not in ("*", elmo) and last == elmo:
            if nlp and not hasattr(dict(nlp.components).get(upstream), "find_listeners"):
                return (
                    f"A listener in the component '{name}' has upstream = \"{upstream}\", but no "
                    f"component of that name makes vectors. {list_components(nlp)} Set its "
                    f"upstream to '{elmo}', or to the name of another one that makes vectors."
                )
            advice = (
                f"Put '{elmo}' before '{upstream}' or behind '{name}', or give '{name}' a copy of "
                f"its own before you add '{elmo}': nlp.replace_listeners('{upstream}', '{name}', "
                f"['model.tok2vec'])."
            )
        return advice and (
            f"A listener in the component '{name}' learns from '{upstream}', but when it predicts "
            f"it reads doc.tensor, which '{last}' has replaced by then. {advice}"
        )
