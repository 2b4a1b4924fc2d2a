"""Vectors of words that a biLM has read before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getsizeof
from threading import RLock

import torch

MAX_WORD_BYTES = 128  # of a cached word in Python: 79 characters of ASCII, 27 of Hangul
# What a word takes beside its vector, at most: the dict's entry and its value were measured to take
# 55 to 76 bytes, depending on when the dict has grown.
ENTRY_BYTES = MAX_WORD_BYTES + 80


class WordCache:
    """A table of words' vectors, for weights that do not change. When full, it begins anew.

    Threads may share it. Words of more than `MAX_WORD_BYTES` are not stored.

    Args:
        max_bytes: size of the table, the words included.
    """

    def __init__(self, max_bytes: int = 44 * 2**20):
        self.max_bytes = max_bytes
        self._lock = RLock()  # while entries are read or changed, not while they are computed
        self._rows: dict[str, int] = {}
        self._table = torch.empty(0, 0)

    def clear(self) -> None:
        """Drop all vectors. The table stays: if threads freed tables, an allocator might keep one
        for each."""
        with self._lock:
            self._rows = {}

    def __len__(self) -> int:
        return len(self._rows)

    def lookup(
        self, words: Sequence[str], encode: Callable[[Sequence[str]], torch.Tensor]
    ) -> torch.Tensor:
        """Vectors of words, from the cache where they are in it.

        Args:
            words: distinct words.
            encode: computes the vectors ``(n, P)`` of the words that are missing.

        Returns:
            ``(n_words, P)``.
        """
        with self._lock:
            known = [i for i, word in enumerate(words) if word in self._rows]
            missing = [i for i, word in enumerate(words) if word not in self._rows]
            found = self._table[[self._rows[words[i]] for i in known]]  # a copy
        if not missing:
            return found
        fresh = encode([words[i] for i in missing])
        vectors = fresh.new_empty(len(words), fresh.shape[1])
        vectors[missing] = fresh
        if known:
            vectors[known] = found
        with self._lock:
            self._store([words[i] for i in missing], fresh)
        return vectors

    def _store(self, words: list[str], vectors: torch.Tensor) -> None:
        capacity = self.max_bytes // (vectors.element_size() * vectors.shape[1] + ENTRY_BYTES)
        new = ((word, i) for i, word in enumerate(words[:capacity]) if word not in self._rows)
        stored = {word: i for word, i in new if getsizeof(word) <= MAX_WORD_BYTES}
        if len(self._rows) + len(stored) > capacity:
            self.clear()
        if not len(self._table):
            # A tensor made in inference mode could not be written to outside it.
            with torch.inference_mode(False):
                self._table = vectors.new_empty(capacity, vectors.shape[1])
        n = len(self._rows)
        self._table[n : n + len(stored)] = vectors[list(stored.values())]
        self._rows.update(zip(stored, range(n, n + len(stored)), strict=True))
