"""A teacher: another model, whose vectors of words the biLM learns too.

Tang et al. 2019 and Turc et al. 2019 distil vectors of whole sentences; here each word has one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, islice
from typing import Any

import numpy as np
import torch

from ..text.readers import CorpusReader
from ..util.files import members, naming_errors
from ..util.settings import shorten

SAMPLE = 1000  # sentences, one of which must have vectors
# Vectors (n, D) of some tokens of a batch, and the indices (n,) of these tokens.
Targets = tuple[torch.Tensor, torch.Tensor]


class EncodedVectors:
    """The vectors of sentences in a file, looked up by the words of a sentence.

    Args:
        path: a ``.npy`` file from `elmo encode --tokenized`, or one in its format, which is mapped
            into memory. All layers of a word are concatenated.

    Raises:
        ValueError: it cannot be read, or its vectors and words do not fit together.
    """

    def __init__(self, path: str):
        if not path.endswith(".npy"):
            raise ValueError(
                f"The teacher's vectors are in '{path}', which is no .npy file. Write one: python "
                f"-m spacy elmo encode CORPUS vectors.npy --tokenized"
            )
        with naming_errors("the teacher's vectors", path):
            vectors = np.load(path, mmap_mode="r")
            if not isinstance(vectors, np.ndarray) or vectors.ndim < 2:
                raise ValueError("it is no array with a vector of each word")
            tokens = f"{path.removesuffix('.npy')}.tokens.jsonl"
            with naming_errors("their words", tokens), open(tokens, encoding="utf-8") as lines:
                rows = [_words(json.loads(line)) for line in lines]
            ends = list(accumulate(map(len, rows), initial=0))
            if len(vectors) != ends[-1]:
                raise ValueError(f"it has {len(vectors):,} vectors of {ends[-1]:,} words")
        self.vectors = vectors  # one for each word
        self.starts = {_key(words): start for words, start in zip(rows, ends, strict=False)}

    def __call__(self, sentences: list[list[str]]) -> list[np.ndarray | None]:
        starts = (self.starts.get(_key(words)) for words in sentences)
        return [
            None if i is None else self.vectors[i : i + len(words)].reshape(len(words), -1)
            for i, words in zip(starts, sentences, strict=True)
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
        give: returns an array or tensor ``(n_words, D)`` for each sentence, or None if it has no
            vectors for that sentence.
        size: D; 0 for any.
    """

    give: Callable[[list[list[str]]], Sequence[Any]]
    size: int = 0

    def vectors(self, sentences: list[list[str]]) -> list[np.ndarray | None]:
        """The vectors of each sentence, ``(n_words, D)`` in float32, or None.

        Raises:
            ValueError: there are vectors for other sentences or words, or some are not finite.
        """
        given = self.give(sentences)
        try:
            arrays = [vectors if vectors is None else _float_array(vectors) for vectors in given]
            if len(arrays) != len(sentences):
                raise ValueError(f"it gave {len(arrays)} for {len(sentences)}")
            for words, array in zip(sentences, arrays, strict=True):
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
        return arrays

    def targets(self, sentences: list[list[str]]) -> Targets | None:
        """The vectors of a batch of sentences, None if there are none.

        Args:
            sentences: the words of the batch's sentences, without boundaries.

        Raises:
            ValueError: see `vectors`.
        """
        arrays, indices, start = [], [], 0
        for words, array in zip(sentences, self.vectors(sentences), strict=True):
            if array is not None:
                arrays.append(array)
                indices.append(np.arange(start + 1, start + 1 + len(words)))
            start += len(words) + 2
        if not arrays:
            return None
        return torch.from_numpy(np.concatenate(arrays)), torch.from_numpy(np.concatenate(indices))


def _float_array(vectors: Any) -> np.ndarray:
    if isinstance(vectors, torch.Tensor):
        vectors = vectors.detach().float().cpu().numpy()
    return np.asarray(vectors, dtype=np.float32)


def find_teacher(
    give: Any, reader: CorpusReader, max_words: int, read: Any = list
) -> tuple[Teacher, float]:
    """The teacher that a config names, and the share of the first sentences that it has vectors of.

    Args:
        give: the result of the function that [training.teacher] names, see `Teacher`.
        reader: reads the training text.
        max_words: longer sentences are split, and the teacher is asked for their pieces.
        read: turns words into the form in which the biLM reads them.

    Raises:
        ValueError: it is no function, it has no vectors of the first sentences, or wrong ones.
    """
    if not callable(give):
        raise ValueError(
            f"Config: [training.teacher] gives a {type(give).__name__}; name what gives a function "
            f"of sentences."
        )
    first = [[*read(words)][:max_words] for words in islice(reader.sentences(), SAMPLE)]
    arrays = [array for words in first for array in Teacher(give).vectors([words])]
    sizes = [array.shape[1] for array in arrays if array is not None]
    if not sizes:
        raise ValueError(
            f"Config: [training.teacher] has no vectors for the first {len(first):,} sentences of "
            f"the training text. Give those of the same sentences, with the same words."
        )
    return Teacher(give, sizes[0]), len(sizes) / len(first)
