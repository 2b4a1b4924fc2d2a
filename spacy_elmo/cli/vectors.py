"""Static word vectors of spaCy pipelines, as the token layer of a biLM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import spacy
from spacy.vectors import Mode
from thinc.api import to_numpy

from ..bilm.static_vectors import WordTable


def read_vectors(name: str | Path, warn: Callable[[str], object]) -> WordTable:
    """The words and rows of a pipeline's vectors; its components are not loaded.

    Args:
        name: of an installed pipeline, or a directory: of a pipeline, or of the output of
            `spacy init vectors`.
        warn: called with a message if rows are left out.

    Raises:
        ValueError: there is no such pipeline, or it has no vectors of words.
    """
    what = f"The word vectors '{name}' ([paths] vectors)"
    try:
        vocab = spacy.load(name, config={"nlp": {"pipeline": []}}).vocab
    except OSError as error:
        raise ValueError(
            f"{what} cannot be read: {error} Give the name or directory of a spaCy pipeline, or "
            f"the output of `python -m spacy init vectors`."
        ) from error
    vectors, strings = vocab.vectors, vocab.strings
    if vectors.mode != Mode.default:
        raise ValueError(
            f"{what} have the mode '{vectors.mode}', which has no row per word. Use vectors of the "
            f"mode 'default', as made by `python -m spacy init vectors`."
        )
    # Keys are hashes; a row of -1 has been removed.
    by_hash = {key: row for key, row in vectors.key2row.items() if row >= 0}
    by_word = {strings[key]: row for key, row in by_hash.items() if key in strings}
    if not by_word:
        raise ValueError(f"{what} are empty: no word has a vector. Name another pipeline.")
    if len(by_word) < len(by_hash):
        warn(
            f"{what}: {len(by_hash) - len(by_word):,} rows are left out, because the pipeline's "
            f"strings lack their words"
        )
    # Unused rows, such as spare ones for more words, are left out.
    used, rows = np.unique(list(by_word.values()), return_inverse=True)
    return WordTable(list(by_word), rows, to_numpy(vectors.data)[used])
