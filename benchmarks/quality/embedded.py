"""Vectors that another model has computed for all sentences of a task, as a layer of ours.

A directory of `peers/embed.py` has ``sentences.json``, a list of lists of words, and for each MODEL
``MODEL.npy``, the layers ``(n_layers, n_words, width)`` of all these words in half precision.
"""

from __future__ import annotations

import json
from collections.abc import Callable
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


def Embedded(model: str, path: str) -> Model[List[Doc], List[Floats2d]]:
    """``benchmarks.Embedded.v1``: a learned mix of the layers of a frozen model.

    Args:
        model: its name in the directory.
        path: the directory.
    """
    layers = np.load(Path(path, f"{model}.npy"), mmap_mode="r")
    attrs = {"layers": layers, "places": places(path)}
    read: Model[List[Doc], List[Floats3d]] = Model("embedded", forward, attrs=attrs)
    return chain(read, ScalarMix(l2=0.001))


def forward(
    model: Model[List[Doc], List[Floats3d]], docs: List[Doc], is_train: bool
) -> tuple[List[Floats3d], Callable[[List[Floats3d]], List[Doc]]]:
    starts = [find(model.attrs["places"], doc) for doc in docs]
    parts = [
        model.attrs["layers"][:, start : start + len(doc)].astype("float32")
        for start, doc in zip(starts, docs, strict=True)
    ]
    return parts, lambda dY: list(docs)


def find(places: dict[tuple[str, ...], int], doc: Doc) -> int:
    """The first row of a Doc.

    Raises:
        ValueError: its sentence is not in the directory.
    """
    words = tuple(token.text for token in doc)
    if words not in places:
        raise ValueError(
            f"There are no vectors of the sentence '{' '.join(words)}'. Run peers/embed.py with "
            f"the task that it is of."
        )
    return places[words]


registry.architectures.register("benchmarks.Embedded.v1", func=Embedded)
