"""Reads with static vectors, which floret makes of a word's n-grams; see `reader`.

Its weights are what `make_floret.py` writes. spaCy looks the words of a batch up all at once.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import reader
import spacy


def load(weights: Path, batch_size: int) -> reader.Read:
    vectors = spacy.load(weights).vocab.vectors

    def read(batch: reader.Batch) -> list[np.ndarray]:
        found = vectors.get_batch([word for sentence in batch for word in sentence])
        ends = np.cumsum([len(sentence) for sentence in batch])
        return np.split(found[None], ends[:-1], axis=1)

    return read


if __name__ == "__main__":
    reader.run("spacy", load, lambda weights: weights / "vocab" / "vectors")
