"""Static vectors of hashed character n-grams beside a biLM: rare words cost memory, not time.

floret (Explosion's compact fastText) trains them on a text, and spaCy reads them: a word's vector
is the mean of the rows of its n-grams and of the whole word. Rows are stored as 8-bit integers.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from ..util.files import reading
from ..util.settings import Settings, in_range

STEPS = 127  # of an 8-bit integer
NUMBERS = ("min_n", "max_n", "n_hashes", "hash_seed")  # of a .floret file's first line, after sizes


@dataclass(frozen=True)
class FloretSettings(Settings):
    """How floret finds the rows of a word.

    Attributes:
        min_n, max_n: characters of an n-gram, the markers of the word's ends included.
        n_hashes: rows of each n-gram.
        hash_seed: of the hash.
        start, end: the markers.
    """

    title = "Subwords:"
    min_n: int = in_range(1, 100, 4)
    max_n: int = in_range(1, 100, 5)
    n_hashes: int = in_range(1, 4, 2)
    hash_seed: int = in_range(0, 2**32 - 1, 2166136261)
    start: str = "<"
    end: str = ">"


@dataclass(frozen=True)
class Subwords:
    """Vectors of n-grams, stored as ``subwords.safetensors``.

    Attributes:
        settings: how the rows of a word are found.
        table: ``(n_rows, vector_dim)``, float32.
    """

    settings: FloretSettings
    table: np.ndarray

    def to_bytes(self) -> bytes:
        """The safetensors format: 8-bit integers, a scale for each row, and the settings."""
        table, text = torch.tensor(self.table), json.dumps(asdict(self.settings)).encode()
        scales = table.abs().amax(dim=1, keepdim=True) / STEPS
        rows = (table / scales.clamp(min=torch.finfo(torch.float32).tiny)).round()
        settings = torch.tensor(np.frombuffer(text, dtype=np.uint8))
        return save_tensors({"rows": rows.to(torch.int8), "scales": scales, "settings": settings})

    @classmethod
    def from_bytes(cls, data: bytes, source: str) -> Subwords:
        """Read what `to_bytes` returned.

        Args:
            data: a safetensors file.
            source: where the data come from, for errors.

        Raises:
            ValueError: something is missing, or has the wrong type, shape or values.
        """
        with reading("the subwords", source):
            tensors = load_tensors(data)
            settings = json.loads(bytes(tensors["settings"].to(torch.uint8).numpy()))
            FloretSettings.check_names(settings)
            rows, scales = tensors["rows"], tensors["scales"]
            if rows.ndim != 2 or 0 in rows.shape or scales.shape != (len(rows), 1):
                raise ValueError(
                    f"its rows and scales have the shapes {rows.shape}, {scales.shape}"
                )
            table = (rows.float() * scales.float()).numpy()
            if not np.isfinite(table).all():
                raise ValueError("a value is not finite")
            return cls(FloretSettings(**settings), table)

    @classmethod
    def from_floret(cls, path: Path) -> Subwords:
        """Read a file that floret wrote (``.floret``).

        Raises:
            ValueError: it is no such file, or damaged.
        """
        with reading("the floret vectors", path), path.open(encoding="utf-8") as file:
            fields = file.readline().rstrip("\n").split(" ")
            if len(fields) != 2 + len(NUMBERS) + 2:
                raise ValueError("its first line must have the 8 settings of floret's own format")
            n_rows, size, *values = map(int, fields[:-2])
            numbers: dict[str, Any] = dict(zip(NUMBERS, values, strict=True))
            settings = FloretSettings(**numbers, start=fields[-2], end=fields[-1])
            table = np.loadtxt(file, dtype=np.float32, comments=None, ndmin=2)
            if table.shape != (n_rows, 1 + size) or not np.isfinite(table).all():
                raise ValueError(f"its first line announces {n_rows:,} rows of {size:,} numbers")
            if not np.array_equal(table[:, 0], np.arange(n_rows)):
                raise ValueError("its rows are not numbered in order")
        return cls(settings, table[:, 1:].copy())
