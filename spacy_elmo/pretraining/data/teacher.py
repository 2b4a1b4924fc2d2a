"""A teacher: another model's vectors of the words of the training text, which the biLM learns too.

Tang et al. 2019 and Turc et al. 2019 for whole sentences; here each word has a vector.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...lm.encoded_sentences import SentenceBatch
from ...text.corpus_reader import CorpusReader
from ...util.files import reading
from ...util.optional_imports import import_extra

# From sentences, the vectors (n_words, D) of each, or None where there are none.
Teacher = Callable[[list[list[str]]], Sequence[Any]]
SAMPLE = 10_000  # sentences, one of which must have vectors


class EncodedVectors:
    """The vectors of sentences that are in a file, found by their words.

    Args:
        path: ``.npy`` or ``.parquet`` as `elmo encode --tokenized` writes them, or any in their
            format: of all layers, the concatenation.
    """

    def __init__(self, path: str):
        self.path = Path(path)

    def __call__(self, sentences: list[list[str]]) -> list[np.ndarray | None]:
        starts, vectors = self._contents
        found = (starts.get(_key(words)) for words in sentences)
        return [
            None if start is None else vectors[start : start + len(words)].reshape(len(words), -1)
            for start, words in zip(found, sentences, strict=True)
        ]

    @cached_property
    def _contents(self) -> tuple[dict[bytes, int], np.ndarray]:
        """Index of each sentence's first vector, and the vectors of all words."""
        with reading("the teacher's vectors", self.path):
            if self.path.suffix == ".npy":
                stem = str(self.path).removesuffix(".npy")
                vectors = np.load(self.path, mmap_mode="r")
                offsets = np.load(f"{stem}.offsets.npy")
                with open(f"{stem}.tokens.jsonl", encoding="utf-8") as lines:
                    rows = [json.loads(line)["tokens"] for line in lines]
            elif self.path.suffix == ".parquet":
                need = "Parquet needs pyarrow"
                parquet = import_extra("pyarrow.parquet", "parquet", need, str(self.path))
                table = parquet.read_table(self.path, columns=["tokens", "vectors"])
                rows = table["tokens"].to_pylist()
                offsets = np.cumsum([0, *map(len, rows)])
                values = table["vectors"].combine_chunks()
                while hasattr(values, "flatten") and hasattr(values.type, "value_type"):
                    values = values.flatten()
                vectors = values.to_numpy(zero_copy_only=False)
                vectors = vectors.reshape(int(offsets[-1]), -1)
            else:
                raise ValueError("it must be a .npy or a .parquet file of `elmo encode`")
            if np.diff(offsets).tolist() != list(map(len, rows)) or len(vectors) != offsets[-1]:
                raise ValueError(f"its {len(vectors):,} vectors and {len(rows):,} rows do not fit")
        starts = offsets[:-1].tolist()
        return {_key(words): start for words, start in zip(rows, starts, strict=True)}, vectors


def _key(words: Sequence[str]) -> bytes:
    return blake2b("\n".join(words).encode("utf-8", "surrogatepass"), digest_size=12).digest()


def vector_size(teacher: Teacher, reader: CorpusReader) -> int:
    """The size D of a teacher's vectors.

    Raises:
        ValueError: the first sentences of the text have none.
    """
    n_seen = 0
    for words in islice(reader.sentences(), SAMPLE):
        [vectors] = teacher([words])
        if vectors is not None and len(vectors):
            return int(np.shape(vectors)[1])
        n_seen += 1
    raise ValueError(
        f"Config: [training.teacher] has no vectors for the first {n_seen:,} sentences of the "
        f"training text. Give those of the same sentences, with the same words."
    )


def taught(batch: SentenceBatch, sentences: list[list[str]], teacher: Teacher) -> SentenceBatch:
    """A batch with the teacher's vectors of its words.

    Args:
        batch: its sentences have boundaries.
        sentences: their words.
        teacher: gives their vectors.

    Raises:
        ValueError: a sentence has not as many vectors as words, or one is not finite.
    """
    found, indices, start = [], [], 0
    for words, vectors in zip(sentences, teacher(sentences), strict=True):
        if vectors is not None:
            array = np.asarray(vectors, dtype=np.float32)
            if len(array) != len(words) or not np.isfinite(array).all():
                raise ValueError(
                    f"[training.teacher] gave {len(array)} vectors for the {len(words)} words of "
                    f"{' '.join(words[:8])!r} …, or some are not finite; it must give one of each."
                )
            found.append(array)
            indices.append(np.arange(start + 1, start + 1 + len(words)))
        start += len(words) + 2
    if not found:
        return batch
    lessons = torch.from_numpy(np.concatenate(found)), torch.from_numpy(np.concatenate(indices))
    return replace(batch, lessons=lessons)
