"""What a frozen biLM has read during a training, so that it reads each sentence once."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import torch

BYTES_OF_ENTRY = 512  # what Python needs beside the numbers


class LayerCache:
    """Layers of sentences by their words; the least recently used are forgotten first.

    It works only while something learns: `keep` turns it on. It turns itself off when it has been
    filled once over without that, as by a long text that is read after the training.

    Args:
        megabytes: most that it holds, in 2²⁰ bytes; 0 for no cache.
        half: hold the numbers in half precision, which needs half of the room and rounds them.

    Attributes:
        is_on: whether it works.
        hits, misses: sentences that it has, and has not, been able to give.
    """

    def __init__(self, megabytes: int, half: bool):
        self.megabytes, self.half = megabytes, half
        self.hits = self.misses = 0
        self.drop()

    def drop(self) -> None:
        """Forget everything, and turn off."""
        self.is_on = False
        self._held: dict[bytes, torch.Tensor] = {}  # the least recently used comes first
        self._bytes = 0
        self._bytes_since_learning = 0
        self._version = -1

    def keep(self) -> None:
        """Something learns from what is read: turn on."""
        self.is_on = self.megabytes > 0
        self._bytes_since_learning = 0

    def check(self, version: int) -> None:
        """Forget everything if the biLM's weights are of another version than before."""
        if version != self._version:
            self._held, self._bytes, self._version = {}, 0, version

    def get(self, words: Sequence[str]) -> torch.Tensor | None:
        """Layers ``(L + 1, n_words, 2P)`` of a sentence, if they are there; not to be changed."""
        key = _key(words)
        layers = self._held.pop(key, None)
        if layers is None:
            self.misses += 1
            return None
        self.hits += 1
        self._held[key] = layers
        return layers.float()

    def put(self, words: Sequence[str], layers: torch.Tensor) -> None:
        """Hold a copy of the layers of a sentence."""
        if not self.is_on:
            return
        kept = layers.detach().clone()
        if self.half and kept.abs().amax() <= torch.finfo(torch.float16).max:
            kept = kept.half()
        size = kept.nbytes + BYTES_OF_ENTRY
        most = self.megabytes * 2**20
        self._bytes_since_learning += size
        if self._bytes_since_learning > most:
            self.drop()
            return
        key = _key(words)
        self._forget(key)
        while self._held and self._bytes + size > most:
            self._forget(next(iter(self._held)))
        self._held[key] = kept
        self._bytes += size

    def _forget(self, key: bytes) -> None:
        layers = self._held.pop(key, None)
        if layers is not None:
            self._bytes -= layers.nbytes + BYTES_OF_ENTRY


def _key(words: Sequence[str]) -> bytes:
    # A list's repr tells ["a b"] from ["a", "b"], whatever is in the words.
    return blake2b(repr(list(words)).encode("utf-8"), digest_size=16).digest()
