"""Vectors of hashed n-grams that floret (Explosion's compact fastText) has trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...bilm.files import reading
from ...bilm.subwords import SubwordSettings

NUMBERS = ("n_rows", "vector_dim", "min_n", "max_n", "n_hashes", "hash_seed")  # of the first line


def floret_settings(path: Path) -> SubwordSettings:
    """The settings in the first line of a file that floret wrote (``.floret``).

    Raises:
        ValueError: it is no such file.
    """
    with reading("the floret vectors", path), path.open(encoding="utf-8") as file:
        fields = file.readline().rstrip("\n").split(" ")
        if len(fields) != len(NUMBERS) + 2:
            raise ValueError("its first line must have the 8 settings of floret's own format")
        numbers: dict[str, Any] = dict(zip(NUMBERS, map(int, fields[:-2]), strict=True))
        return SubwordSettings(**numbers, start=fields[-2], end=fields[-1])


def read_floret(path: Path) -> torch.Tensor:
    """The table ``(n_rows, vector_dim)`` of a file that floret wrote.

    Raises:
        ValueError: it is no such file, or damaged.
    """
    settings = floret_settings(path)
    n_rows, size = settings.n_rows, settings.vector_dim
    with reading("the floret vectors", path), path.open(encoding="utf-8") as file:
        next(file)
        table = np.loadtxt(file, dtype=np.float32, comments=None, ndmin=2)
        if table.shape != (n_rows, 1 + size) or not np.isfinite(table).all():
            raise ValueError(f"its first line announces {n_rows:,} rows of {size:,} numbers")
        if not np.array_equal(table[:, 0], np.arange(n_rows)):
            raise ValueError("its rows are not numbered in order")
    return torch.from_numpy(table[:, 1:].copy())


def with_subwords(model: Mapping[str, Any] | None, path: str | None) -> Mapping[str, Any] | None:
    """The section [model] of a config, with the subwords of a file that floret wrote, if any.

    Raises:
        ValueError: it is no such file, or [model.subwords] differs from it.
    """
    if path is None:
        return model
    model, found = dict(model or {}), asdict(floret_settings(Path(path)))
    given = model.get("subwords") or {}
    different = {name: value for name, value in given.items() if found.get(name) != value}
    if different:
        raise ValueError(
            f"Config: [model.subwords] has {different}, but [paths] subwords, '{path}', was made "
            f"with {found}; remove the block, it follows from the file."
        )
    return {**model, "subwords": found}
