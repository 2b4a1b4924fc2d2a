"""The word vectors of a run whose biLM reads these instead of characters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from safetensors.torch import load_file
from spacy.vectors import Mode
from thinc.api import to_numpy

from ..bilm.static_vectors import WordTable, pack_words, unpack_words
from ..util.files import atomic_file, reading
from ..weights.find import load_bilm
from ..weights.native import Weights, write_tensors
from .config import PretrainConfig

TABLE = "vectors.safetensors"  # of a run, written once: checkpoints leave frozen tables out


def find_table(
    config: PretrainConfig, source: Path | Weights | None, notify: Callable[[str], None]
) -> tuple[PretrainConfig, WordTable | None]:
    """The word vectors of a run, and its config with their sizes.

    Args:
        config: all settings.
        source: the file of a resumed run; the weights that a new one starts from; None for those
            that [paths] vectors names.
        notify: prints what is noteworthy about them.

    Raises:
        ValueError: the config has no model; or there are no vectors, they cannot be read, or their
            sizes differ from the config's.
    """
    if config.model is None:
        raise ValueError("Config: there is no [model] section. Add one, or give weights (--from).")
    if config.model.token_encoder != "vectors":
        return config, None
    where = str(source)
    if isinstance(source, Path):
        table = read_table(source)
    elif source is not None:
        table, where = load_bilm(source).word_vectors.contents(), source.where
    elif config.paths.vectors is None:
        raise ValueError(
            "Config: [paths] vectors is not set, but [model] token_encoder is 'vectors'; give a "
            "spaCy pipeline that has vectors, by name or directory, as --paths.vectors NAME."
        )
    else:
        where = config.paths.vectors
        table = read_vectors(where, notify)
    sizes: dict[str, Any] = table.sizes()
    for name, size in sizes.items():
        if getattr(config.model, name) not in (None, size):
            raise ValueError(
                f"Config: [model] {name} is {getattr(config.model, name):,}, but the word vectors "
                f"'{where}' have {size:,}; remove the setting, it follows from them."
            )
    n_words, n_vectors, vector_dim = sizes.values()
    learning = "trained" if config.training.train_vectors else "frozen"
    notify(f"{n_words:,} words with {n_vectors:,} {vector_dim}-dimensional vectors, {learning}")
    return replace(config, model=replace(config.model, **sizes)), table


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


def write_table(table: WordTable, path: Path) -> None:
    """Write a table to a file that `read_table` reads, whole or not at all."""
    tensors = {
        "words": pack_words(table.words),
        "rows": torch.from_numpy(table.rows.copy()),
        "table": torch.from_numpy(table.vectors.copy()),
    }
    with atomic_file(path) as temporary:
        write_tensors(tensors, temporary)


def read_table(path: Path) -> WordTable:
    """The table that `write_table` wrote.

    Raises:
        ValueError: it is missing or damaged.
    """
    with reading("the word vectors", path):
        tensors = load_file(path)
        words = unpack_words(tensors["words"])
        return WordTable(words, tensors["rows"].numpy(), tensors["table"].numpy())
