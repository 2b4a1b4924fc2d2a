"""Where the text of a training comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path


class Source(ABC):
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

    def sentences(self) -> Iterator[list[str]]:
        """Those of all files."""
        return (words for file in self.files() for words in self.read(file))
