"""A cache of layers, so that a frozen biLM reads each sentence of a training once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Any

import torch

BYTES_PER_ENTRY = 512  # what Python needs beside the tensor
MAX_PREDICTED = 10  # predictions that read this many times the cache's size end it


class LayerCache:
    """The layers of sentences, by their words.

    `begin` turns the cache on, at each batch of a training. `clear` turns it off. Predictions also
    turn it off, once they have read `MAX_PREDICTED` times its size since the last batch. A full
    cache takes no more sentences: evicting the oldest ones would give no hits in epochs that are
    larger than the cache.

    Args:
        megabytes: the size in 2²⁰ bytes; 0 for no cache.

    Attributes:
        is_on: the cache stores layers.
        hits: how many sentences were found.
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
        """Turn on: something is trained on the sentences that are read now."""
        self.is_on, self._predicted = self.limit > 0, 0

    def lookup(
        self,
        sentences: Sequence[Sequence[str]],
        read: Callable[[Sequence[Sequence[str]]], list[torch.Tensor]],
        version: Hashable,
    ) -> list[torch.Tensor]:
        """Look up the layers of sentences, and compute those that are missing.

        Args:
            sentences: lists of words.
            read: computes the layers of sentences.
            version: identifies the weights and how they compute; entries of other versions do not
                count.

        Returns:
            Layers ``(L + 1, n_words, 2P)`` for each sentence, which must not be written to.
        """
        keys = [_key(words, version) for words in sentences]
        results: list[Any] = [self._entries.get(key) for key in keys]
        missing = [i for i, layers in enumerate(results) if layers is None]
        self.hits += len(results) - len(missing)
        for i, layers in zip(missing, read([sentences[i] for i in missing]), strict=True):
            results[i], size = layers, layers.nbytes + BYTES_PER_ENTRY
            with self._lock:
                if keys[i] not in self._entries and self._bytes + size <= self.limit:
                    self._entries[keys[i]] = layers.detach().clone()
                    self._bytes += size
        self._predicted += sum(layers.nbytes for layers in results)
        if self._predicted > MAX_PREDICTED * self.limit:
            self.clear()
        return results


def _key(words: Sequence[str], version: Hashable) -> bytes:
    # A list's repr tells ["a b"] from ["a", "b"], whatever characters are in the words.
    return blake2b(repr((version, list(words))).encode("utf-8"), digest_size=16).digest()
