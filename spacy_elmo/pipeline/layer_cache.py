"""Layers that a frozen biLM has computed during a training, so that it reads each sentence once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Any

import torch

BYTES_PER_ENTRY = 512  # what Python needs beside the tensor
PREDICTED = 10  # times its size that predictions may read before the training counts as ended


class LayerCache:
    """Layers of sentences by their words, while something is trained on them.

    It is off until `begin`. Once full it takes nothing more: evicting the oldest would give no hits
    on epochs that are larger than it. It ends by `clear`, or when predictions have read many times
    its size without a further `begin`.

    Args:
        megabytes: its size in 2²⁰ bytes; 0 for no cache.

    Attributes:
        is_on: whether it stores anything.
        hits: sentences that were found.
    """

    def __init__(self, megabytes: int):
        self.limit = megabytes * 2**20
        self.hits = 0
        self._lock = Lock()
        self.clear()

    def clear(self) -> None:
        """Drop all entries, and turn off."""
        with self._lock:
            self.is_on = False
            self._entries: dict[bytes, torch.Tensor] = {}
            self._bytes = self._predicted = 0

    def begin(self) -> None:
        """Something is trained on what is read now."""
        self.is_on, self._predicted = self.limit > 0, 0

    def lookup(
        self,
        sentences: Sequence[Sequence[str]],
        read: Callable[[Sequence[Sequence[str]]], list[torch.Tensor]],
        version: Hashable,
    ) -> list[torch.Tensor]:
        """Layers ``(L + 1, n_words, 2P)`` of sentences, from the cache where they are in it.

        Args:
            sentences: words of each.
            read: computes the layers of the sentences that are missing.
            version: of the weights and of how they compute; the layers of another are not found.

        Returns:
            One for each sentence, which must not be written to.
        """
        keys = [_key(words, version) for words in sentences]
        found: list[Any] = [self._entries.get(key) for key in keys]
        missing = [i for i, layers in enumerate(found) if layers is None]
        self.hits += len(found) - len(missing)
        for i, layers in zip(missing, read([sentences[i] for i in missing]), strict=True):
            found[i], size = layers, layers.nbytes + BYTES_PER_ENTRY
            with self._lock:
                if keys[i] not in self._entries and self._bytes + size <= self.limit:
                    self._entries[keys[i]] = layers.detach().clone()
                    self._bytes += size
        self._predicted += sum(layers.nbytes for layers in found)
        if self._predicted > PREDICTED * self.limit:
            self.clear()
        return found


def _key(words: Sequence[str], version: Hashable) -> bytes:
    # A list's repr tells ["a b"] from ["a", "b"], whatever characters are in the words.
    return blake2b(repr((version, list(words))).encode("utf-8"), digest_size=16).digest()
