"""Vectors of hashed character n-grams beside the char-CNN: rare words cost memory, not time.

Hashes and n-grams are those of floret (spaCy's compact fastText), so that its tables fit: a word's
vector is the mean of the rows of its n-grams and of the whole word. Weights keep the rows as 8-bit
integers where they have been rounded to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..util.settings import Settings, in_range
from .characters import BOS, EOS, CharacterIds

MAX_ROWS = 2**31 - 2  # ids of rows are 32-bit integers
BLOCK = 16  # bytes that the hash reads at once
SCALE = "_scale"  # ends the name of a table's scales in a file
STEPS = 127  # of an 8-bit integer


@dataclass(frozen=True)
class SubwordSettings(Settings):
    """A table of hashed n-grams: those of `min_n` to `max_n` characters, and the whole word.

    Attributes:
        n_rows, vector_dim: the size of the table.
        min_n, max_n: characters of an n-gram, the markers of the word's ends included.
        n_hashes: rows of each n-gram.
        hash_seed: of the hash.
        start, end: the markers.
    """

    title = "biLM config: [subwords]"
    n_rows: int = in_range(1, MAX_ROWS, 50_000)
    vector_dim: int = in_range(1, 2**20, 128)
    min_n: int = in_range(2, 100, 4)
    max_n: int = in_range(2, 100, 5)
    n_hashes: int = in_range(1, 4, 2)
    hash_seed: int = in_range(0, 2**32 - 1, 2166136261)
    start: str = "<"
    end: str = ">"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_n < self.min_n:
            raise self.error("max_n", f"it must not be smaller than min_n ({self.min_n})")
        if len(self.start + self.end) > 2:
            raise self.error("start", "start and end together may have two characters")

    @property
    def rows_per_position(self) -> int:
        """Ids of rows at each position of a word: enough for all of its n-grams."""
        return self.n_hashes * (self.max_n - self.min_n + 1)


class SubwordIds(CharacterIds):
    """The ids of words for a char-CNN with subwords.

    Args:
        max_width, max_characters: see `CharacterIds`. A word's n-grams are those of the characters
            that the char-CNN reads.
        settings: of the table.
    """

    def __init__(self, max_width: int, max_characters: int, settings: SubwordSettings):
        super().__init__(max_width, max_characters)
        self.settings = settings

    def __call__(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids ``(n_words, n_positions, 1 + rows_per_position)``, and the positions of each word.

        The first at each position is the byte's; all others are 1 + the rows of the word's
        n-grams, in no order, and 0 for none. Boundaries of sentences have no n-grams.
        """
        ids, sizes = super().__call__(words)
        width = self.settings.rows_per_position
        rows, counts = self._rows(words)
        cells = np.zeros((len(words), ids.shape[1] * width), dtype=np.int32)
        cells[np.arange(cells.shape[1]) < counts[:, np.newaxis]] = rows + 1
        cells = cells.reshape(*ids.shape, width)
        return np.concatenate([ids[..., np.newaxis], cells], axis=2, dtype=np.int32), sizes

    def _rows(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The rows of all words, one after another, and how many each has ``(n_words,)``."""
        grams: dict[str, int] = {}  # each is hashed once
        index: list[int] = []
        counts = np.zeros(len(words), dtype=np.int64)
        sizes = range(self.settings.min_n, self.settings.max_n + 1)
        for number, word in enumerate(words):
            if word in (BOS, EOS):
                continue
            read = word.encode("utf-8", "ignore")[: self.max_characters - 2]
            key = self.settings.start + read.decode("utf-8", "ignore") + self.settings.end
            parts = [key, *(key[i : i + n] for n in sizes for i in range(len(key) - n + 1))]
            index.extend([grams.setdefault(part, len(grams)) for part in parts])
            counts[number] = len(parts) * self.settings.n_hashes
        hashes = murmur3([gram.encode() for gram in grams], self.settings.hash_seed)
        rows = hashes[:, : self.settings.n_hashes] % np.uint32(self.settings.n_rows)
        return rows.astype(np.int32)[index].ravel(), counts


class Subwords(nn.Module):
    """The mean of the rows of a word's n-grams, projected.

    The projection starts from zeros: a biLM that gets subwords computes what it did before.

    Args:
        settings: of the table.
        projection_dim: size P of x_k.
    """

    def __init__(self, settings: SubwordSettings, projection_dim: int):
        super().__init__()
        self.settings = settings
        self.table = nn.Parameter(0.1 * torch.randn(settings.n_rows, settings.vector_dim))
        self.projection = nn.Linear(settings.vector_dim, projection_dim, bias=False)
        nn.init.zeros_(self.projection.weight)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """``(n_words, n)`` ids of rows, see `SubwordIds`, to ``(n_words, P)``."""
        return self.projection(self.mean(rows))

    def mean(self, rows: torch.Tensor) -> torch.Tensor:
        """``(n_words, n)`` ids of rows to ``(n_words, vector_dim)``; zeros where there are none."""
        is_row = rows > 0
        counts = is_row.sum(dim=1)
        return F.embedding_bag(rows[is_row] - 1, self.table, counts.cumsum(0) - counts, mode="mean")


def murmur3(texts: Sequence[bytes], seed: int) -> np.ndarray:
    """The four 32-bit parts of MurmurHash3_x64_128 of each text, ``(n, 4)`` uint32.

    The algorithm is Austin Appleby's, in the public domain.
    """
    lengths = np.fromiter(map(len, texts), dtype=np.uint64, count=len(texts))
    n_blocks = int(lengths.max(initial=0)) // BLOCK + 1  # the last of each text is not full
    packed = b"".join(text.ljust(n_blocks * BLOCK, b"\0") for text in texts)
    words = np.frombuffer(packed, dtype="<u8").reshape(len(texts), n_blocks, 2)
    c1, c2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
    h1, h2 = np.full((2, len(texts)), seed, dtype=np.uint64)

    def rotate(x: np.ndarray, bits: int) -> np.ndarray:
        return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))

    def finish(x: np.ndarray) -> np.ndarray:
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            x = (x ^ (x >> np.uint64(33))) * np.uint64(factor)
        return x ^ (x >> np.uint64(33))

    for b in range(n_blocks):
        k1 = rotate(words[:, b, 0] * c1, 31) * c2
        k2 = rotate(words[:, b, 1] * c2, 33) * c1
        full, rest = lengths >= (b + 1) * BLOCK, lengths // BLOCK == b
        mixed1 = rotate(h1 ^ k1, 27) + h2
        mixed1 = mixed1 * np.uint64(5) + np.uint64(0x52DCE729)
        mixed2 = rotate(h2 ^ k2, 31) + mixed1
        mixed2 = mixed2 * np.uint64(5) + np.uint64(0x38495AB5)
        h1 = np.where(full, mixed1, np.where(rest, h1 ^ k1, h1))
        h2 = np.where(full, mixed2, np.where(rest, h2 ^ k2, h2))
    h1, h2 = h1 ^ lengths, h2 ^ lengths
    h1 = h1 + h2
    h2 = h2 + h1
    h1, h2 = finish(h1), finish(h2)
    h1 = h1 + h2
    h2 = h2 + h1
    return np.stack([h1, h2], axis=1).astype("<u8").view("<u4")


def round_rows(table: torch.Tensor) -> torch.Tensor:
    """A table whose rows are 8-bit integers times a scale."""
    rows, scales = _pack(table)
    return rows.to(table.dtype) * scales.to(table.dtype)


def _pack(table: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows as int8 ``(n_rows, vector_dim)``, and their scales ``(n_rows, 1)`` in bfloat16, whose
    product with 127 a float32 has exactly: what was packed once is packed again as it was."""
    scales = (table.abs().amax(dim=1, keepdim=True) / STEPS).bfloat16()
    divisor = scales.to(table.dtype).clamp(min=torch.finfo(torch.float32).tiny)
    return (table / divisor).round().clamp(-STEPS, STEPS).to(torch.int8), scales


def pack_table(name: str, table: torch.Tensor) -> dict[str, torch.Tensor] | None:
    """A table as the tensors of a file, 8-bit integers and scales; None where that is not exact."""
    rows, scales = _pack(table)
    if not torch.equal(rows.to(table.dtype) * scales.to(table.dtype), table):
        return None
    return {name: rows, name + SCALE: scales}


def unpack_tables(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors of a file, those that `pack_table` has packed in float32."""
    found = {name: tensor for name, tensor in tensors.items() if not name.endswith(SCALE)}
    for name, rows in found.items():
        scales = tensors.get(name + SCALE)
        if scales is not None and rows.dtype == torch.int8 and scales.shape == (len(rows), 1):
            found[name] = rows.float() * scales.float()
    return found
