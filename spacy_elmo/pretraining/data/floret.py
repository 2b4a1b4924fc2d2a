"""Vectors of hashed n-grams that floret (Explosion's compact fastText) has trained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from ...bilm.subwords import SubwordSettings
from ...util.files import reading
from ...util.optional_imports import import_extra

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


def train_floret(
    sentences: Iterable[Sequence[str]], settings: SubwordSettings, n_epochs: int, min_count: int
) -> torch.Tensor:
    """The table ``(n_rows, vector_dim)`` that floret trains on a text, in one thread.

    Args:
        sentences: the text.
        settings: of the table.
        n_epochs: passes over the text.
        min_count: rarer words are not predicted.

    Raises:
        ValueError: floret is not installed, cannot have such settings, or finds no words.
    """
    need = "[training] subword_epochs needs floret"
    floret = import_extra("floret", "subwords", need, "Config")
    with TemporaryDirectory() as folder:
        text, out = Path(folder, "text.txt"), Path(folder, "table.floret")
        with text.open("w", encoding="utf-8") as file:
            file.writelines(" ".join(words) + "\n" for words in sentences)
        model = floret.train_unsupervised(
            str(text), model="cbow", mode="floret", bucket=settings.n_rows,
            dim=settings.vector_dim, minn=settings.min_n, maxn=settings.max_n,
            hashCount=settings.n_hashes, minCount=min_count, epoch=n_epochs, thread=1, verbose=0,
        )  # fmt: skip
        model.save_floret_vectors(str(out))
        if floret_settings(out) != settings:
            raise ValueError(
                f"Config: [model.subwords] is {settings}, but floret itself can only train "
                f"{floret_settings(out)}; remove what differs."
            )
        return read_floret(out)
