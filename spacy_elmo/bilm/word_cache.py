"""Vectors x_k of words seen before: they depend on the word alone, so each is computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

import torch


class WordCache:
    """A bounded table of words' vectors, the least recently used half being given up.

    Two generations: words go into the young one; when it is full it becomes the old one, and
    the old one before it is dropped. A word found in the old generation moves to the young.
    Safe to be used by several threads. Copies and pickles start empty.

    Args:
        max_bytes: of both generations together.
    """

    def __init__(self, max_bytes: int = 32 * 2**20):
        self.max_bytes = max_bytes
        self._lock = Lock()
        self.clear()

    def clear(self) -> None:
        """Forget all; to be called when the weights change."""
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._young_table = self._old_table = torch.empty(0, 0)

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def __reduce__(self) -> tuple[type[WordCache], tuple[int]]:
        return WordCache, (self.max_bytes,)

    def lookup(
        self, words: Sequence[str], encode: Callable[[Sequence[str]], torch.Tensor]
    ) -> torch.Tensor:
        """Vectors ``(n_words, P)`` of distinct words; `encode` computes those not known."""
        with self._lock:
            young, old = self._young, self._old
            found_young = [(i, young[word]) for i, word in enumerate(words) if word in young]
            rest = [i for i, word in enumerate(words) if word not in young]
            found_old = [(i, old[words[i]]) for i in rest if words[i] in old]
            unknown = [i for i in rest if words[i] not in old]
            if not rest:
                return self._young_table[[row for _, row in found_young]]
            fresh = encode([words[i] for i in unknown])
            vectors = fresh.new_empty(len(words), fresh.shape[1])
            vectors[unknown] = fresh
            for found, table in ((found_young, self._young_table), (found_old, self._old_table)):
                if found:
                    places, rows = map(list, zip(*found, strict=True))
                    vectors[places] = table[rows]
            self._remember([words[i] for i in rest], vectors[rest])
            return vectors

    def _remember(self, words: list[str], vectors: torch.Tensor) -> None:
        capacity = self.max_bytes // (2 * vectors.element_size() * vectors.shape[1])
        if len(words) > capacity:
            return  # they would drive out everything, themselves included
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
