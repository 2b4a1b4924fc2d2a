"""What a run is given: its config, and what that only names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, NamedTuple

from ...bilm.word_vectors import WordTable
from ..config import PretrainConfig
from ..data.reader import CorpusReader
from ..data.shards import Shards
from .log import Follow


class Given(NamedTuple):
    """What a run is given: all settings, and what these only name.

    Attributes:
        config: the settings.
        sources: the corpus readers of [corpora], ``"train"`` and ``"dev"``; where there is none,
            [paths] names sentence shards.
        vectors: the word vectors of a new run whose ``token_encoder`` is "vectors", if they are
            not a file that [paths] vectors names. A run that is resumed has them.
        follow: from the entries that the log of a resumed run has already, makes a context with a
            function that is told each further one, and each step.
    """

    config: PretrainConfig
    sources: Mapping[str, CorpusReader] = MappingProxyType({})
    vectors: WordTable | None = None
    follow: Callable[[list[dict[str, Any]]], AbstractContextManager[Follow]] | None = None

    def source(self, name: str) -> CorpusReader:
        """The text under a name, "train" or "dev".

        Raises:
            ValueError: there is none, or what reads it has not been made.
        """
        if name in self.sources:
            return self.sources[name]
        config = self.config
        if name in config.corpora:
            raise ValueError(
                f"Config: [corpora.{name}] names a reader, which only spaCy can make: use "
                f"`python -m spacy elmo pretrain`, or give sentence shards as [paths] {name} in "
                f"its place."
            )
        paths = getattr(config.paths, name)
        if not paths:
            raise ValueError(f"Config: [paths] {name} is not set; give it as --paths.{name} PATH.")
        return Shards(paths)
