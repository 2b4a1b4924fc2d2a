"""Vectors x_k of words seen before: they depend on the word alone, so each is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from sys import getsizeof

import torch

from ..util.locks import CACHES

MAX_WORD_BYTES = 128  # in Python: 79 characters of ASCII, 27 of Hangul
# What a word takes beside its vector, at most: the dict's entry and its value were measured to take
# 55 to 76 bytes, depending on when the dict has grown.
ENTRY_BYTES = MAX_WORD_BYTES + 80


class WordCache:
    """A bounded table of words' vectors that evicts the least recently used half.

    Two generations: words go into the young one; when it is full it becomes the old one, and
    the old one before it is dropped. A word found in the old generation moves to the young.
    Threads may share it. Copies and pickles start empty. Words of more than `MAX_WORD_BYTES`
    are not stored.

    Args:
        max_bytes: of both generations together, the words included.
    """

    def __init__(self, max_bytes: int = 44 * 2**20):
        self.max_bytes = max_bytes
        self._version: Hashable = None
        self._drop()

    def clear(self) -> None:
        """Drop all vectors; call it when the weights have changed.

        What another thread has begun to compute before is not stored after.
        """
        with CACHES:
            self._drop()

    def _drop(self) -> None:
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._young_table = self._old_table = torch.empty(0, 0)

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def __reduce__(self) -> tuple[type[WordCache], tuple[int]]:
        return WordCache, (self.max_bytes,)

    def lookup(
        self,
        words: Sequence[str],
        encode: Callable[[Sequence[str]], torch.Tensor],
        version: Hashable = None,
    ) -> torch.Tensor:
        """Vectors of words, from the cache where they are in it.

        Args:
            words: distinct words.
            encode: computes the vectors ``(n, P)`` of the words that are missing.
            version: of the weights; vectors of another version are dropped.

        Returns:
            ``(n_words, P)``.
        """
        with CACHES:
            if version != self._version:
                self._drop()
                self._version = version
            young, old = self._young, self._old
            found_young = [(i, young[word]) for i, word in enumerate(words) if word in young]
            rest = [i for i, word in enumerate(words) if word not in young]
            found_old = [(i, old[words[i]]) for i in rest if words[i] in old]
            missing = [i for i in rest if words[i] not in old]
            if not rest:
                return self._young_table[[row for _, row in found_young]]
            copies = []
            for found, table in ((found_young, self._young_table), (found_old, self._old_table)):
                if found:
                    positions, rows = map(list, zip(*found, strict=True))
                    copies.append((positions, table[rows]))
        fresh = encode([words[i] for i in missing])
        vectors = fresh.new_empty(len(words), fresh.shape[1])
        vectors[missing] = fresh
        for positions, copy in copies:
            vectors[positions] = copy
        with CACHES:
            if self._young is young:  # no other thread has cleared it, or begun a new generation
                short = (i for i in rest if getsizeof(words[i]) <= MAX_WORD_BYTES)
                stored = [i for i in short if words[i] not in young]
                self._store([words[i] for i in stored], vectors[stored])
        return vectors

    def _store(self, words: list[str], vectors: torch.Tensor) -> None:
        each = vectors.element_size() * vectors.shape[1] + ENTRY_BYTES
        capacity = self.max_bytes // (2 * each)
        if len(words) > capacity:
            return  # they would evict everything, themselves included
        if self._young_table.shape[0] == 0:
            self._young_table = _table(capacity, vectors)
        if len(self._young) + len(words) > capacity:
            self._old, self._old_table = self._young, self._young_table
            self._young, self._young_table = {}, _table(capacity, vectors)
        start = len(self._young)
        self._young_table[start : start + len(words)] = vectors
        self._young.update(zip(words, range(start, start + len(words)), strict=True))


def _table(capacity: int, like: torch.Tensor) -> torch.Tensor:
    # A tensor made in inference mode could not be written to outside it.
    with torch.inference_mode(False):
        return torch.empty(capacity, like.shape[1], dtype=like.dtype, device=like.device)
