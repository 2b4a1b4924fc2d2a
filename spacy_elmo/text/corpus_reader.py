"""Interface of what reads the texts of a training."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path


class CorpusReader(ABC):
    """A text in files, read sentence by sentence.

    A function that a config registers under ``[corpora.train]`` or ``[corpora.dev]`` returns one.
    """

    @abstractmethod
    def files(self) -> list[Path]:
        """Its files, always in the same order.

        Raises:
            ValueError: there are none.
        """

    @abstractmethod
    def sentences_in(self, file: Path) -> Iterator[list[str]]:
        """The sentences of one file, as lists of words; none is empty.

        Raises:
            ValueError: the file cannot be read.
        """

    @abstractmethod
    def card(self) -> dict[str, str]:
        """Return the language of the text as ``lang``, and as ``tokenizer`` the registered name of
        its tokenizer, if that is not the language's own; for the card of the biLM."""

    def fingerprint(self) -> str:
        """Changes with the files, their order, names and sizes, and with the tokenizer; not with
        the directory that they are in."""
        files = [(file.name, file.stat().st_size) for file in self.files()]
        facts = json.dumps([type(self).__name__, sorted(self.card().items()), files])
        return hashlib.sha256(facts.encode()).hexdigest()

    def sentences(self) -> Iterator[list[str]]:
        """Yield the sentences of all files."""
        return (words for file in self.files() for words in self.sentences_in(file))
