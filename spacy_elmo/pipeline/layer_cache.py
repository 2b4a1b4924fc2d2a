"""Layers that a frozen biLM has computed during a training, so that it reads each sentence once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from typing import cast

import torch

from ..util.locks import CACHES

BYTES_PER_ENTRY = 512  # what Python needs beside the tensor


class LayerCache:
    """Layers of sentences by their words; the least recently used are evicted first.

    It is off until `enable` is called by what is trained on the layers. It turns itself off when
    it has been filled once over without a further call, as by a long text that is read after the
    training. Threads may share it.

    Args:
        megabytes: its size in 2²⁰ bytes; 0 for no cache.
        half: store the layers in half precision, which takes half of the memory and rounds them.

    Attributes:
        is_on: whether it stores anything.
        hits, misses: sentences that were found, and not found.
    """

    def __init__(self, megabytes: int, half: bool):
        self.megabytes, self.half = megabytes, half
        self.hits = self.misses = 0
        self.disable()

    def disable(self) -> None:
        """Drop all entries, and turn off."""
        with CACHES:
            self.is_on = False
            self._entries: dict[bytes, torch.Tensor] = {}  # the least recently used comes first
            self._bytes = 0
            self._bytes_since_enabled = 0

    def enable(self) -> None:
        """Turn on: something is trained on the layers."""
        with CACHES:
            self.is_on = self.megabytes > 0
            self._bytes_since_enabled = 0

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
        if not self.is_on:
            return read(sentences)
        found = [self.get(words, version) for words in sentences]
        missing = [i for i, layers in enumerate(found) if layers is None]
        for i, layers in zip(missing, read([sentences[i] for i in missing]), strict=True):
            self.put(sentences[i], layers, version)
            found[i] = layers
        return cast(list[torch.Tensor], found)

    def get(self, words: Sequence[str], version: Hashable = None) -> torch.Tensor | None:
        """Layers ``(L + 1, n_words, 2P)`` of a sentence, None on a miss; not to be written to."""
        key = _key(words, version)
        with CACHES:
            layers = self._entries.pop(key, None)
            if layers is None:
                self.misses += 1
                return None
            self.hits += 1
            self._entries[key] = layers
        return layers.float()

    def put(self, words: Sequence[str], layers: torch.Tensor, version: Hashable = None) -> None:
        """Store a copy of the layers of a sentence."""
        if not self.is_on:
            return
        copied = layers.detach().clone()
        if self.half and copied.abs().amax() <= torch.finfo(torch.float16).max:
            copied = copied.half()
        size = copied.nbytes + BYTES_PER_ENTRY
        limit = self.megabytes * 2**20
        key = _key(words, version)
        with CACHES:
            self._bytes_since_enabled += size
            if not self.is_on or self._bytes_since_enabled > limit:
                self.disable()
                return
            self._evict(key)
            while self._entries and self._bytes + size > limit:
                self._evict(next(iter(self._entries)))
            self._entries[key] = copied
            self._bytes += size

    def _evict(self, key: bytes) -> None:
        layers = self._entries.pop(key, None)
        if layers is not None:
            self._bytes -= layers.nbytes + BYTES_PER_ENTRY


def _key(words: Sequence[str], version: Hashable) -> bytes:
    # A list's repr tells ["a b"] from ["a", "b"], whatever characters are in the words.
    return blake2b(repr((version, list(words))).encode("utf-8"), digest_size=16).digest()
