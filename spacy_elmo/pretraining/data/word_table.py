"""The word vectors of a run whose biLM reads these instead of characters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from ...bilm.static_vectors import WordTable, pack_words, unpack_words
from ...util.files import atomic_file, reading
from ...weights.native import write_tensors
from ..config import Notify, PretrainConfig

TABLE = "vectors.safetensors"  # of a run, written once: checkpoints leave frozen tables out


def find_table(
    config: PretrainConfig, out: Path, resumed: bool, notify: Notify
) -> tuple[PretrainConfig, WordTable | None]:
    """The word vectors of a run, and its config with their sizes.

    Args:
        config: all settings.
        out: the directory of the run; it has the table if the run is resumed.
        resumed: whether the run is resumed from its checkpoint.
        notify: prints what is noteworthy about them.

    Raises:
        ValueError: there are none, they cannot be read, or their sizes differ from the config's.
    """
    if config.model.token_encoder != "vectors":
        return config, None
    path = config.paths.vectors
    if resumed:
        table, source = read_table(out / TABLE), str(out / TABLE)
    elif config.start is not None:
        table, source = config.start.load().word_vectors.contents(), config.start.where
    elif path is None:
        raise ValueError(
            "Config: [paths] vectors is not set, but [model] token_encoder is 'vectors'; give a "
            "spaCy pipeline that has vectors, by name or directory, as --paths.vectors NAME."
        )
    elif path.endswith(".safetensors"):
        table, source = read_table(Path(path)), path
    else:
        table, source = config.make("paths.vectors", path, notify), path
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
