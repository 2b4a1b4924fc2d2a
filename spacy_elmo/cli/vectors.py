"""Static word vectors as spaCy's pipelines hold them, for a biLM on top of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..bilm.word_vectors import WordTable


def read_vectors(name: str | Path, say: Callable[[str], object]) -> WordTable:
    """The words of a pipeline's vectors, and their rows; no component of it is loaded.

    Args:
        name: of an installed pipeline, or a directory: of a pipeline, or what
            `spacy init vectors` wrote.
        say: told what of it is not there.

    Raises:
        ValueError: there is no such pipeline, or it has no table of words.
    """
    import numpy as np
    import spacy
    from spacy.vectors import Mode
    from thinc.api import to_numpy

    from ..bilm.word_vectors import WordTable

    what = f"The word vectors '{name}' ([paths] vectors)"
    try:
        vocab = spacy.load(name, config={"nlp": {"pipeline": []}}).vocab
    except OSError as error:
        raise ValueError(
            f"{what} cannot be read: {error} Give the name or directory of a spaCy pipeline, or "
            f"what `python -m spacy init vectors` wrote."
        ) from error
    vectors, strings = vocab.vectors, vocab.strings
    if vectors.mode != Mode.default:
        raise ValueError(
            f"{what} are of the mode '{vectors.mode}', which has no table of words. Give some of "
            f"the mode 'default', as `python -m spacy init vectors` makes them."
        )
    # A hash for each word, and -1 for one whose row was given up.
    of_hashes = {key: row for key, row in vectors.key2row.items() if row >= 0}
    of_words = {strings[key]: row for key, row in of_hashes.items() if key in strings}
    if not of_words:
        raise ValueError(f"{what} are empty: it has no words with vectors. Name another pipeline.")
    if len(of_words) < len(of_hashes):
        say(f"{what}: {len(of_hashes) - len(of_words):,} have no word in its strings, left out")
    # Rows that no word has, such as those kept free for more words, are left out.
    used, rows = np.unique(list(of_words.values()), return_inverse=True)
    return WordTable(list(of_words), rows, to_numpy(vectors.data)[used])
