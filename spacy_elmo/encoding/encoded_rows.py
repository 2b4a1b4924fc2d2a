"""Encoded rows: their ids, tokens and vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class EncodedRows:
    """Some rows with their vectors.

    Attributes:
        ids: of the rows: their numbers in the corpus, or what the user gives.
        tokens: of each row the texts that its vectors belong to: its tokens, its sentences, or
            the whole document.
        vectors: of all rows, one for each of their texts: ``(n, 2P)``, or ``(n, L + 1, 2P)`` with
            all layers.
        level: what a vector belongs to, see `Encoder`.
        kept: columns of the corpus by name, with a value for each row.
    """

    ids: Sequence[Any]
    tokens: list[list[str]]
    vectors: np.ndarray
    level: str = "tokens"
    kept: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def offsets(self) -> np.ndarray:
        """Start of each row's vectors, and end of the last ones, ``(n_rows + 1,)``."""
        return np.cumsum([0, *map(len, self.tokens)], dtype=np.int64)

    def __iter__(self) -> Iterator[tuple[Any, list[str], np.ndarray]]:
        """The id, texts and vectors of each row."""
        vectors = np.split(self.vectors, self.offsets[1:-1]) if self.tokens else []
        yield from zip(self.ids, self.tokens, vectors, strict=True)
