"""The config of a pretraining run as spaCy reads configs, and the functions that it names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confection import Config
from spacy.cli._util import parse_config_overrides
from spacy.util import load_config, registry

from ..pretraining.config import PretrainConfig
from ..pretraining.config_file import REFERENCE, build_config, find_section, parse_overrides
from ..text.interface import CorpusReader
from ..util.files import reading


def read_spacy_config(
    path: Path, overrides: Sequence[str] = (), resumed: Path | None = None
) -> PretrainConfig:
    """Read a config with spaCy's own reader, and override its settings from the command line.

    Args:
        path: the file, ``-`` for the standard input.
        overrides: ``--section.name value``, as in `parse_overrides`; they win over those of the
            environment variable SPACY_CONFIG_OVERRIDES.
        resumed: directory of a run to resume; see `build_config`.

    Raises:
        ValueError: the file or a setting cannot be read, or is not a setting.
    """
    settings = parse_config_overrides([])
    for section, name, text in parse_overrides(overrides):
        settings[f"{section}.{name}"] = text if REFERENCE.fullmatch(text) else json.loads(text)
    with reading("the config", str(path)):  # which may be a pipe
        data: Any = load_config(path)
    for name, value in settings.items():
        section, _, setting = name.rpartition(".")
        find_section(data, section)[setting] = value
    with reading("the config", str(path)):
        data = Config(data).interpolate()
    return build_config(data, resumed)


def make_named(config: PretrainConfig) -> tuple[dict[str, CorpusReader], Any, Any]:
    """Make what a config names: corpus readers, the set-up function of its logger, its teacher; the
    last two may be None.

    Raises:
        ValueError: a function is not registered, its settings are wrong, or it makes something
            else.
    """
    readers = {}
    for name, block in config.corpora.items():
        readers[name] = _resolve(f"corpora.{name}", block)
        if not isinstance(readers[name], CorpusReader):
            raise ValueError(
                f"Config: [corpora.{name}] names '{block['@readers']}', which does not read texts "
                f"for pretraining; use spacy-elmo.Texts.v1 or spacy-elmo.Shards.v1."
            )
    blocks = {"logger": config.training.logger, "teacher": config.training.teacher}
    logger, teacher = (
        None if block is None else _resolve(f"training.{name}", block)
        for name, block in blocks.items()
    )
    if teacher is not None and not callable(teacher):
        raise config.training.error("teacher", "it must name a function that makes a function")
    return readers, logger, teacher


def _resolve(name: str, block: dict[str, Any]) -> Any:
    try:
        return registry.resolve({"block": block})["block"]
    except (ValueError, TypeError, ImportError) as error:
        raise ValueError(f"Config: [{name}] cannot be made. {str(error).strip()}") from error
