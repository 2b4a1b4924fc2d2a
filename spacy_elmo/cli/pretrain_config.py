"""The config of a pretraining run as spaCy reads configs, and what it names."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from confection import Config
from spacy.util import load_config, registry

from ..pretraining.config import PretrainConfig, build_config, override, split_overrides
from ..text.corpus_reader import CorpusReader
from ..util.files import read_json, reading
from .pretrain_logger import SpacyLogger
from .vectors import read_vectors


def read_spacy_config(
    path: Path, arguments: Sequence[str] = (), resumed: Path | None = None
) -> PretrainConfig:
    """Read a config and override its settings.

    Args:
        path: a spaCy config, ``-`` for the standard input; or the JSON file of a run.
        arguments: overrides, ``--section.name value``; they win over those of the environment
            variable SPACY_CONFIG_OVERRIDES.
        resumed: directory of a run to resume; see `build_config`.

    Raises:
        ValueError: the file or a setting cannot be read, or is not a setting.
    """
    variable = shlex.split(os.environ.get("SPACY_CONFIG_OVERRIDES", ""))
    overrides, others = split_overrides([*variable, *arguments])
    if others:
        raise ValueError(
            f"Unknown argument '{others[0]}'; after CONFIG and OUT, override settings of the "
            f"config as --section.name value."
        )
    with reading("the config", str(path)):  # which may be a pipe
        data: Any = read_json(path) if path.suffix == ".json" else load_config(path)
    override(data, overrides)
    with reading("the config", str(path)):
        data = Config(data).interpolate()
    return build_config(data, resumed)


def make_named(
    config: PretrainConfig, resumed: bool = False, notify: Callable[[str], None] = print
) -> PretrainConfig:
    """Make what a config names: corpus readers, logger, teacher, and the word vectors of a new run.

    Args:
        config: all settings.
        resumed: whether the run is resumed; it has its word vectors.
        notify: prints what is noteworthy about the word vectors.

    Raises:
        ValueError: a function is not registered, its settings are wrong, or it makes something
            else; or the word vectors cannot be read.
    """
    readers = {name: _resolve(f"corpora.{name}", block) for name, block in config.corpora.items()}
    for name, reader in readers.items():
        if not isinstance(reader, CorpusReader):
            raise ValueError(
                f"Config: [corpora.{name}] names '{config.corpora[name]['@readers']}', which does "
                f"not read texts for pretraining; use spacy-elmo.Texts.v1 or spacy-elmo.Shards.v1."
            )
    setup_logger = _resolve("training.logger", config.training.logger)
    logger = None if setup_logger is None else partial(SpacyLogger, setup_logger, config)
    teacher = _resolve("training.teacher", config.training.teacher)
    if teacher is not None and not callable(teacher):
        raise config.training.error("teacher", "it must name a function that makes a function")
    table, vectors = None, config.paths.vectors
    if vectors is not None and not resumed and not vectors.endswith(".safetensors"):
        table = read_vectors(vectors, notify)
    return replace(config, readers=readers, make_logger=logger, teacher=teacher, word_table=table)


def _resolve(name: str, block: dict[str, Any] | None) -> Any:
    if block is None:
        return None
    try:
        return registry.resolve({"block": block})["block"]
    except (ValueError, TypeError, ImportError) as error:
        raise ValueError(f"Config: [{name}] cannot be made. {str(error).strip()}") from error
