"""Where the text of a training comes from."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path


class CorpusReader(ABC):
    """A text in files, read a sentence at a time.

    What a corpus reader of a config returns, under ``[corpora.train]`` or ``[corpora.dev]``.
    """

    @abstractmethod
    def files(self) -> list[Path]:
        """Its files, in an order that is always the same.

        Raises:
            ValueError: there is nothing to be read.
        """

    @abstractmethod
    def read(self, file: Path) -> Iterator[list[str]]:
        """The sentences of one of them, as words; none of them is empty.

        Raises:
            ValueError: the file cannot be read.
        """

    @abstractmethod
    def card(self) -> dict[str, str]:
        """What is known of its words, for the card of the biLM: their language as ``lang``, and
        as ``tokenizer`` the registered name of what made them, if not the language's own."""

    def fingerprint(self) -> str:
        """Changes with the files, their order, names and sizes, and with what makes their words;
        not with the directory that they are in."""
        files = [(file.name, file.stat().st_size) for file in self.files()]
        facts = json.dumps([type(self).__name__, sorted(self.card().items()), files])
        return hashlib.sha256(facts.encode()).hexdigest()

    def sentences(self) -> Iterator[list[str]]:
        """Those of all files."""
        return (words for file in self.files() for words in self.read(file))
