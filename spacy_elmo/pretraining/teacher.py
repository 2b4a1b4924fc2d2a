"""A teacher: another model's vectors of the words of the training text, which the biLM learns too.

Tang et al. 2019 and Turc et al. 2019 for whole sentences; here each word has a vector.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import accumulate, islice
from typing import Any

import numpy as np
import torch

from ..lm.encoded_sentences import SentenceBatch
from ..text.shards import CorpusReader
from ..util.files import members, reading
from ..util.settings import shorten

SAMPLE = 1000  # sentences, one of which must have vectors


class EncodedVectors:
    """The vectors of sentences that are in a file, found by their words.

    Args:
        path: ``.npy``, which is mapped into memory, as `elmo encode --tokenized` writes it, or any
            in its format: of all layers, the concatenation.

    Raises:
        ValueError: it cannot be read, or its vectors and words do not fit together.
    """

    def __init__(self, path: str):
        if not path.endswith(".npy"):
            raise ValueError(
                f"The teacher's vectors are in '{path}', which is no .npy file. Write one: python "
                f"-m spacy elmo encode CORPUS vectors.npy --tokenized"
            )
        with reading("the teacher's vectors", path):
            vectors = np.load(path, mmap_mode="r")
            if not isinstance(vectors, np.ndarray) or vectors.ndim < 2:
                raise ValueError("it is no array with a vector of each word")
            tokens = f"{path.removesuffix('.npy')}.tokens.jsonl"
            with reading("their words", tokens), open(tokens, encoding="utf-8") as lines:
                rows = [_words(json.loads(line)) for line in lines]
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


def _words(row: Any) -> list[str]:
    [words] = members(row, tokens=list)
    if not all(isinstance(word, str) for word in words):
        raise ValueError(f"expected the words of a sentence, found {shorten(words)}")
    return words


def _key(words: Sequence[str]) -> bytes:
    return blake2b("\n".join(words).encode("utf-8", "surrogatepass"), digest_size=12).digest()


@dataclass(frozen=True)
class Teacher:
    """Another model's vectors of words.

    Attributes:
        give: from sentences, the vectors ``(n_words, D)`` of each, an array or tensor; None where
            there are none.
        size: D; 0 for any.
    """

    give: Callable[[list[list[str]]], Sequence[Any]]
    size: int = 0

    def vectors(self, sentences: list[list[str]]) -> list[np.ndarray | None]:
        """The vectors of sentences: of each ``(n_words, D)``, float32, or None.

        Raises:
            ValueError: they are not those of all sentences and words, or some are not finite.
        """
        given = self.give(sentences)
        try:
            found = [vectors if vectors is None else _float_array(vectors) for vectors in given]
            if len(found) != len(sentences):
                raise ValueError(f"it gave {len(found)} for {len(sentences)}")
            for words, array in zip(sentences, found, strict=True):
                if array is None:
                    continue
                if array.shape != (len(words), self.size or array.shape[-1]):
                    raise ValueError(f"it gave the shape {array.shape} for {len(words)} words")
                if not np.isfinite(array).all():
                    raise ValueError(f"those of {' '.join(words[:8])!r} are not finite")
        except (TypeError, ValueError, IndexError) as error:
            raise ValueError(
                f"[training.teacher] must give None or an array (n_words, D) of finite numbers for "
                f"each sentence, D always {self.size or 'the same'}. From this "
                f"{type(given).__name__}: {error}."
            ) from error
        return found


def _float_array(vectors: Any) -> np.ndarray:
    if isinstance(vectors, torch.Tensor):
        vectors = vectors.detach().float().cpu().numpy()
    return np.asarray(vectors, dtype=np.float32)


def find_teacher(
    give: Any, reader: CorpusReader, max_words: int, read: Any = list
) -> tuple[Teacher, float]:
    """A teacher, and the share of the first sentences of the text that it has vectors of.

    Args:
        give: what [training.teacher] names, see `Teacher`.
        reader: of the training text.
        max_words: longer sentences are split, and the teacher is asked for their pieces.
        read: gives the words as the biLM reads them, and as the teacher is asked for them.

    Raises:
        ValueError: it is no function, the first sentences have no vectors, or they are wrong.
    """
    if not callable(give):
        raise ValueError(
            f"Config: [training.teacher] gives a {type(give).__name__}; name what gives a function "
            f"of sentences."
        )
    first = [[*read(words)][:max_words] for words in islice(reader.sentences(), SAMPLE)]
    found = [array for words in first for array in Teacher(give).vectors([words])]
    sizes = [array.shape[1] for array in found if array is not None]
    if not sizes:
        raise ValueError(
            f"Config: [training.teacher] has no vectors for the first {len(first):,} sentences of "
            f"the training text. Give those of the same sentences, with the same words."
        )
    return Teacher(give, sizes[0]), len(sizes) / len(first)


def add_targets(
    batch: SentenceBatch, sentences: list[list[str]], teacher: Teacher
) -> SentenceBatch:
    """A batch with the teacher's vectors of its words.

    Args:
        batch: its sentences have boundaries.
        sentences: their words.
        teacher: gives their vectors.

    Raises:
        ValueError: see `Teacher.vectors`.
    """
    found, indices, start = [], [], 0
    for words, array in zip(sentences, teacher.vectors(sentences), strict=True):
        if array is not None:
            found.append(array)
            indices.append(np.arange(start + 1, start + 1 + len(words)))
        start += len(words) + 2
    if not found:
        return batch
    vectors, tokens = (torch.from_numpy(np.concatenate(each)) for each in (found, indices))
    return replace(batch, teacher_targets=(vectors, tokens))
