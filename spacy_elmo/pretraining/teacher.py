"""A teacher: another model's vectors of the words of the training text, which the biLM learns too.

Tang et al. 2019 and Turc et al. 2019 for whole sentences; here each word has a vector.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import accumulate, islice
from typing import Any

import numpy as np
import torch

from ..lm.encoded_sentences import SentenceBatch
from ..text.corpus_reader import CorpusReader
from ..util.files import reading
from ..util.optional_imports import import_extra

# From sentences, the vectors (n_words, D) of each, an array or tensor; None where there are none.
Teacher = Callable[[list[list[str]]], Sequence[Any]]
SAMPLE = 10_000  # sentences, one of which must have vectors
ESTIMATED = 1000  # sentences, of which the share that has some is an estimate for all


class EncodedVectors:
    """The vectors of sentences that are in a file, found by their words.

    Args:
        path: ``.npy`` or ``.parquet`` as `elmo encode --tokenized` writes them, or any in their
            format: of all layers, the concatenation.

    Raises:
        ValueError: it cannot be read, or its vectors and words do not fit together.
    """

    def __init__(self, path: str):
        stem = path.removesuffix(".npy")
        with reading("the teacher's vectors", path):
            if path.endswith(".npy"):
                vectors = np.load(path, mmap_mode="r")
                tokens = f"{stem}.tokens.jsonl"
                with reading("their words", tokens), open(tokens, encoding="utf-8") as lines:
                    rows = [json.loads(line)["tokens"] for line in lines]
            elif path.endswith(".parquet"):
                need = "Parquet needs pyarrow"
                parquet = import_extra("pyarrow.parquet", "parquet", need, path)
                table = parquet.read_table(path, columns=["tokens", "vectors"])
                rows, values = table["tokens"].to_pylist(), table["vectors"].combine_chunks()
                while hasattr(values, "flatten") and hasattr(values.type, "value_type"):
                    values = values.flatten()
                vectors = values.to_numpy(zero_copy_only=False)
                vectors = vectors.reshape(sum(map(len, rows)), -1)
            else:
                raise ValueError("it must be a .npy or a .parquet file of `elmo encode`")
            ends = list(accumulate(map(len, rows), initial=0))
            if len(vectors) != ends[-1]:
                raise ValueError(f"it has {len(vectors):,} vectors of {ends[-1]:,} words")
        self.vectors = vectors  # of all words
        self.starts = {_key(words): start for words, start in zip(rows, ends, strict=False)}

    def __call__(self, sentences: list[list[str]]) -> list[np.ndarray | None]:
        found = (self.starts.get(_key(words)) for words in sentences)
        return [
            None if i is None else self.vectors[i : i + len(words)].reshape(len(words), -1)
            for i, words in zip(found, sentences, strict=True)
        ]


def _key(words: Sequence[str]) -> bytes:
    return blake2b("\n".join(words).encode("utf-8", "surrogatepass"), digest_size=12).digest()


def arrays_of(teacher: Teacher, sentences: list[list[str]]) -> list[np.ndarray | None]:
    """A teacher's vectors of sentences: of each ``(n_words, D)``, or None.

    Args:
        teacher: gives the vectors.
        sentences: lists of words.

    Raises:
        ValueError: they are not those of all sentences and words, or some are not finite.
    """
    given = teacher(sentences)
    try:
        found = [vectors if vectors is None else _float_array(vectors) for vectors in given]
        sizes = {array.shape[1:] for array in found if array is not None}
        if len(found) != len(sentences) or len(sizes) > 1:
            raise ValueError(f"it gave {len(found)} for {len(sentences)}, of the sizes {sizes}")
        for words, array in zip(sentences, found, strict=True):
            if array is not None and (array.ndim != 2 or len(array) != len(words)):
                raise ValueError(f"it gave the shape {array.shape} for {len(words)} words")
            if array is not None and not np.isfinite(array).all():
                raise ValueError(f"those of {' '.join(words[:8])!r} are not finite")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"[training.teacher] must give None or an array (n_words, D) of finite numbers for "
            f"each sentence, D always the same. From this {type(given).__name__}: {error}."
        ) from error
    return found


def _float_array(vectors: Any) -> np.ndarray:
    if isinstance(vectors, torch.Tensor):
        vectors = vectors.detach().float().cpu().numpy()
    return np.asarray(vectors, dtype=np.float32)


def vector_size(teacher: Teacher, reader: CorpusReader, max_words: int) -> tuple[int, float]:
    """The size D of a teacher's vectors, and the share of the first sentences that have some.

    Args:
        teacher: gives the vectors.
        reader: of the training text.
        max_words: longer sentences are split, and the teacher is asked for their pieces.

    Raises:
        ValueError: the first sentences of the text have none, or they are wrong.
    """
    size = n_seen = n_found = 0
    for words in islice(reader.sentences(), SAMPLE):
        [vectors] = arrays_of(teacher, [words[:max_words]])
        n_seen += 1
        if vectors is not None:
            n_found, size = n_found + 1, vectors.shape[1]
        if size and n_seen >= ESTIMATED:
            break
    if size:
        return size, n_found / n_seen
    raise ValueError(
        f"Config: [training.teacher] has no vectors for the first {n_seen:,} sentences of the "
        f"training text. Give those of the same sentences, with the same words."
    )


def add_targets(
    batch: SentenceBatch, sentences: list[list[str]], teacher: Teacher
) -> SentenceBatch:
    """A batch with the teacher's vectors of its words.

    Args:
        batch: its sentences have boundaries.
        sentences: their words.
        teacher: gives their vectors.

    Raises:
        ValueError: see `arrays_of`.
    """
    found, indices, start = [], [], 0
    for words, array in zip(sentences, arrays_of(teacher, sentences), strict=True):
        if array is not None:
            found.append(array)
            indices.append(np.arange(start + 1, start + 1 + len(words)))
        start += len(words) + 2
    if not found:
        return batch
    vectors, tokens = (torch.from_numpy(np.concatenate(each)) for each in (found, indices))
    return replace(batch, teacher_targets=(vectors, tokens))
