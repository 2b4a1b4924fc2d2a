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
            rows = [self._rows.get(word) for word in words]
            known = [i for i, row in enumerate(rows) if row is not None]
            found = self._table[[rows[i] for i in known]]  # a copy
        if len(known) == len(words):
            return found
        missing = [i for i, row in enumerate(rows) if row is None]
        fresh = encode([words[i] for i in missing])
        vectors = fresh.new_empty(len(words), fresh.shape[1])
        vectors[missing] = fresh
        if known:
            vectors[known] = found
        capacity = self.max_bytes // (fresh.element_size() * fresh.shape[1] + ENTRY_BYTES)
        with self._lock:
            new = [i for i in missing[:capacity] if words[i] not in self._rows]
            new = [i for i in new if getsizeof(words[i]) <= MAX_WORD_BYTES]
            if len(self._rows) + len(new) > capacity:
                self.clear()
            if not len(self._table):
                # A tensor made in inference mode could not be written to outside it.
                with torch.inference_mode(False):
                    self._table = fresh.new_empty(capacity, fresh.shape[1])
            n = len(self._rows)
            self._table[n : n + len(new)] = vectors[new]
            self._rows.update((words[i], row) for row, i in enumerate(new, n))
        return vectors
