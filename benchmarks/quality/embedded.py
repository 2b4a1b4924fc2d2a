"""Vectors that another model has computed for all sentences of a task, as a layer of ours.

A directory of `peers/embed.py` has ``sentences.json``, a list of lists of words, and for each MODEL
``MODEL.npy``, the layers ``(n_layers, n_words, width)`` of all these words in half precision.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import List  # noqa: UP035

import numpy as np
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model, chain
from thinc.types import Floats2d, Floats3d

from spacy_elmo.pipeline.scalar_mix import ScalarMix

# spaCy checks configs against these annotations, so they are plain types, not strings.
# ruff: noqa: UP006


@lru_cache(maxsize=1)
def places(directory: str) -> dict[tuple[str, ...], int]:
    """The first row of each sentence."""
    found, n_words = {}, 0
    for words in json.loads(Path(directory, "sentences.json").read_text("utf-8")):
        found[tuple(words)] = n_words
        n_words += len(words)
    return found


class Vectors:
    """The layers of a model for words of a sentence, ``(n_layers, n_words, width)``.

    Args:
        directory, model: see this module.
    """

    def __init__(self, directory: Path, model: str = "minilm"):
        self.layers = np.load(directory / f"{model}.npy", mmap_mode="r")
        self.places = places(str(directory))

    def __call__(self, words: Iterable[str]) -> np.ndarray:
        """Read a sentence.

        Raises:
            ValueError: it is not in the directory.
        """
        sentence = tuple(words)
        if sentence not in self.places:
            raise ValueError(
                f"There are no vectors of the sentence '{' '.join(sentence)}'. Run peers/embed.py "
                f"with the task that it is of."
            )
        start = self.places[sentence]
        return self.layers[:, start : start + len(sentence)].astype("float32")


def Embedded(model: str, path: str) -> Model[List[Doc], List[Floats2d]]:
    """``benchmarks.Embedded.v1``: a learned mix of the layers of a frozen model.

    Args:
        model: its name in the directory.
        path: the directory.
    """
    attrs = {"vectors": Vectors(Path(path), model)}
    read: Model[List[Doc], List[Floats3d]] = Model("embedded", forward, attrs=attrs)
    return chain(read, ScalarMix(l2=0.001))


def forward(
    model: Model[List[Doc], List[Floats3d]], docs: List[Doc], is_train: bool
) -> tuple[List[Floats3d], Callable[[List[Floats3d]], List[Doc]]]:
    parts = [model.attrs["vectors"](token.text for token in doc) for doc in docs]
    return parts, lambda dY: list(docs)


registry.architectures.register("benchmarks.Embedded.v1", func=Embedded)
