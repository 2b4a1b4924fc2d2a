"""A token encoder: words to x_k by a table of static vectors (Word2Vec, GloVe, fastText, …)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from ..util.files import reading
from .characters import BOS, EOS
from .config import BiLMConfig
from .product_rows import in_rows

# Ids of words that are not in the table, and of those that are: FIRST + their row.
SENTENCE_START, SENTENCE_END, UNKNOWN, FIRST = 0, 1, 2, 3
TOO_LARGE = 1e18  # its square still is a float32
END_OF_WORD = b"\xff"  # UTF-8 never has this byte, so a word may have any character


@dataclass
class WordTable:
    """Words and their static vectors.

    Attributes:
        words: distinct; of any characters.
        rows: ``(n_words,)`` integers, each word's row. Several words may share one.
        vectors: ``(n_vectors, vector_dim)``, float32.

    Raises:
        ValueError: they do not fit together, there are none, or a value is not finite
            or too large to compute with.
    """

    words: list[str]
    rows: np.ndarray
    vectors: np.ndarray

    def __post_init__(self) -> None:
        self.rows = np.asarray(self.rows, dtype=np.int32)
        self.vectors = np.asarray(self.vectors, dtype=np.float32)
        if self.vectors.ndim != 2 or 0 in self.vectors.shape or not self.words:
            raise ValueError(
                f"A table of word vectors needs at least one word and one dimension; found "
                f"{len(self.words):,} words and vectors of the shape {self.vectors.shape}."
            )
        n_words, n_vectors, rows = len(self.words), len(self.vectors), self.rows
        if rows.shape != (n_words,) or rows.min() < 0 or rows.max() >= n_vectors:
            raise ValueError(
                f"The {n_words:,} words of a table of {n_vectors:,} word vectors need a row each, "
                f"from 0 to {n_vectors - 1:,}; found {rows.size:,} rows, from "
                f"{rows.min(initial=0):,} to {rows.max(initial=0):,}."
            )
        if len(set(self.words)) < n_words:
            [(duplicate, _)] = Counter(self.words).most_common(1)
            raise ValueError(
                f"The table of word vectors has the word {duplicate!r} more than once."
            )
        extremes = np.stack([self.vectors.min(axis=1), self.vectors.max(axis=1)])  # no large copy
        fine = (np.abs(extremes) < TOO_LARGE).all(axis=0)  # false for NaN too
        if not fine.all():
            raise ValueError(
                f"Row {int(np.argmin(fine))} of the word vectors has values that are not finite, "
                f"or too large to compute with."
            )

    def sizes(self) -> dict[str, int]:
        """The settings of a `BiLMConfig` that follow from it."""
        n_vectors, vector_dim = self.vectors.shape
        return {"n_words": len(self.words), "n_vectors": n_vectors, "vector_dim": vector_dim}


class RowIds:
    """The ids of words, as `WordVectors` takes them.

    Lookups are exact: a word in another case or form is unknown.
    """

    def __init__(self, words: Sequence[str], rows: np.ndarray):
        self.ids = dict(zip(words, (rows + FIRST).tolist(), strict=True))
        self.ids |= {BOS: SENTENCE_START, EOS: SENTENCE_END}

    def __contains__(self, word: object) -> bool:
        return word in self.ids

    def __call__(self, words: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids ``(n_words, 1)``, and that each word has that one ``(n_words,)``."""
        found = [self.ids.get(word, UNKNOWN) for word in words]
        return np.array(found, dtype=np.int32).reshape(-1, 1), np.ones(len(found), dtype=np.int64)


class WordVectors(nn.Module):
    """Looks words up in a table, which is not trained, and projects their vectors.

    The rows of ``<S>``, ``</S>`` and the one row of all unknown words are trained.
    The words are a tensor beside the vectors, so that they are saved with the weights.

    Attributes:
        to_ids: words to the ids that `forward` takes.

    Args:
        config: the sizes; the table is empty until `fill` or `load_state_dict`.

    Raises:
        ValueError: the config does not have the size of the table.
    """

    words: torch.Tensor
    rows: torch.Tensor
    table: torch.Tensor

    def __init__(self, config: BiLMConfig):
        super().__init__()
        config.check_complete()
        assert config.n_words and config.n_vectors and config.vector_dim
        # Buffers: no gradient, no state of an optimizer, and `requires_grad_` passes over them.
        self.register_buffer("words", torch.zeros(0, dtype=torch.uint8))
        self.register_buffer("rows", torch.zeros(config.n_words, dtype=torch.int32))
        self.register_buffer("table", torch.zeros(config.n_vectors, config.vector_dim))
        self.special = nn.Parameter(torch.randn(FIRST, config.vector_dim))
        sizes = config.vector_dim, config.projection_dim
        self.projection = nn.Linear(*sizes) if sizes[0] != sizes[1] else None
        self.to_ids = RowIds([], np.zeros(0, dtype=np.int32))
        self.register_load_state_dict_post_hook(_read_loaded)

    def fill(self, table: WordTable, trainable: bool = False) -> None:
        """Take over a table, of the sizes of the config.

        Args:
            table: its vectors are copied if they are trained, else shared.
            trainable: train the vectors, as a parameter.
        """
        self.words, self.rows = pack_words(table.words), torch.tensor(table.rows)
        vectors = torch.from_numpy(np.require(table.vectors, requirements=["C", "W"]))
        self.table = nn.Parameter(vectors.clone()) if trainable else vectors
        with torch.no_grad():
            self.special.mul_(float(table.vectors.std()))  # as large as the others
        self.to_ids = RowIds(table.words, table.rows)

    def contents(self) -> WordTable:
        """The current table."""
        words, rows = unpack_words(self.words), self.rows.cpu().numpy()
        return WordTable(words, rows, self.table.detach().cpu().numpy())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """``(n_words, 1)`` ids to ``(n_words, projection_dim)`` vectors."""
        index = ids[:, 0]
        special = F.embedding(index.clamp(max=UNKNOWN), self.special)
        x = F.embedding((index - FIRST).clamp(min=0), self.table)
        x = torch.where((index < FIRST).unsqueeze(1), special, x)  # (n_words, vector_dim)
        if self.projection is None:
            return x
        return in_rows(self.projection, x).to(x.dtype)  # under autocast


def _read_loaded(module: WordVectors, _: Any) -> None:
    """Damaged words or vectors must not show at the first Doc only."""
    table = module.contents()
    module.to_ids = RowIds(table.words, table.rows)


def pack_words(words: Iterable[str]) -> torch.Tensor:
    """Words of any characters as one tensor of bytes."""
    data = b"".join(word.encode("utf-8", "surrogatepass") + END_OF_WORD for word in words)
    return torch.from_numpy(np.frombuffer(data, dtype=np.uint8).copy())


def unpack_words(packed: torch.Tensor) -> list[str]:
    """The words that `pack_words` has packed.

    Raises:
        ValueError: they are damaged.
    """
    parts = packed.cpu().numpy().tobytes().split(END_OF_WORD)[:-1]
    with reading("the words of", "the word vectors"):
        return [part.decode("utf-8", "surrogatepass") for part in parts]
