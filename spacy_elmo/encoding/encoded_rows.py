"""Encoded rows: their ids, tokens and vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class EncodedRows:
    """Rows with their vectors.

    Attributes:
        ids: the id of each row: its number in the corpus, or what the user gives.
        tokens: for each row, the texts that have a vector: its tokens, its sentences, or the whole
            document.
        vectors: the vectors of all these texts, ``(n, 2P)``, or ``(n, L + 1, 2P)`` with all layers.
        level: what has a vector, see `Encoder`.
        kept: columns of the corpus by name, with a value for each row.
    """

    ids: Sequence[Any]
    tokens: list[list[str]]
    vectors: np.ndarray
    level: str = "tokens"
    kept: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def offsets(self) -> np.ndarray:
        """Where the vectors of each row start, and the last ones end, ``(n_rows + 1,)``."""
        return np.cumsum([0, *map(len, self.tokens)], dtype=np.int64)

    def __iter__(self) -> Iterator[tuple[Any, list[str], np.ndarray]]:
        """Yield the id, the texts and the vectors of each row."""
        vectors = np.split(self.vectors, self.offsets[1:-1]) if self.tokens else []
        yield from zip(self.ids, self.tokens, vectors, strict=True)
