"""The word vectors of a run whose biLM is on top of a table of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ...bilm.files import atomic_file
from ...bilm.find import find_weights
from ...bilm.word_vectors import WordTable, pack_words, unpack_words
from ..config import PretrainConfig

TABLE = "vectors.safetensors"  # of a run, once: a table that does not learn is in no checkpoint


def find_table(
    config: PretrainConfig, out: Path, resume: bool, given: WordTable | None
) -> tuple[PretrainConfig, WordTable | None]:
    """The table of a run, and its config with the sizes of that table.

    Args:
        config: all settings.
        out: the directory of the run; it has the table if the run is to be resumed.
        resume: go on from its checkpoint.
        given: what was read for ``[paths] vectors``; see `trainer.pretrain`.

    Raises:
        ValueError: there is none, it cannot be read, or it is not of the sizes in the config.
    """
    if config.model.token_encoder != "vectors":
        if given is not None:
            raise ValueError(
                f"Word vectors were given, but [model] token_encoder is "
                f"{config.model.token_encoder!r}; set it to 'vectors'."
            )
        return config, None
    path = config.paths.vectors
    if resume:
        table, source = read_table(out / TABLE), str(out / TABLE)
    elif config.paths.weights is not None:
        table = find_weights(config.paths.weights).load().word_vectors.contents()
        source = str(config.paths.weights)
    elif given is not None:
        table, source = given, str(path or "given")
    elif path is not None and path.endswith(".safetensors"):
        table, source = read_table(Path(path)), path
    elif path is not None:
        raise ValueError(
            f"Config: [paths] vectors is {path!r}; only `python -m spacy elmo pretrain` reads "
            f"spaCy's vectors. Without spaCy, give a file of the name *.safetensors."
        )
    else:
        raise ValueError(
            "Config: [paths] vectors is not set, but [model] token_encoder is 'vectors'; give a "
            "spaCy pipeline that has vectors, by name or directory, as --paths.vectors NAME."
        )
    sizes: dict[str, Any] = table.sizes()
    for name, size in sizes.items():
        if getattr(config.model, name) not in (None, size):
            raise ValueError(
                f"Config: [model] {name} is {getattr(config.model, name):,}, but the word vectors "
                f"'{source}' have {size:,}; remove the setting, it follows from them."
            )
    return replace(config, model=replace(config.model, **sizes)), table


def write_table(table: WordTable, path: Path) -> None:
    """Write a table to a file that `read_table` reads, whole or not at all."""
    tensors = {
        "words": pack_words(table.words),
        "rows": torch.from_numpy(table.rows.copy()),
        "table": torch.from_numpy(table.vectors.copy()),
    }
    with atomic_file(path) as temporary:
        save_file(tensors, temporary)


def read_table(path: Path) -> WordTable:
    """The table that `write_table` wrote.

    Raises:
        ValueError: it is missing or damaged.
    """
    try:
        tensors = load_file(path)
        words = unpack_words(tensors["words"])
        return WordTable(words, tensors["rows"].numpy(), tensors["table"].numpy())
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise ValueError(f"Cannot read the word vectors {path}: {error}") from error
