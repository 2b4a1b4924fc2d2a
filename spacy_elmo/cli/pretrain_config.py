"""The config of a pretraining, as spaCy reads configs, and the functions that it names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from configparser import Error as ConfigParserError
from pathlib import Path
from typing import Any

from confection import Config
from spacy.cli._util import parse_config_overrides
from spacy.util import load_config, registry

from ..pretraining.config import CORPORA, PretrainConfig
from ..pretraining.config_file import REFERENCE, assemble, parse_overrides, section_of
from ..pretraining.data.reader import CorpusReader


def read_spacy_config(
    path: Path, overrides: Sequence[str] = (), run: Path | None = None
) -> PretrainConfig:
    """Read a config by spaCy's own reader, with command-line settings put over it.

    Args:
        path: the file, ``-`` for the standard input.
        overrides: ``--section.name value``, as in `parse_overrides`; those of the environment
            variable SPACY_CONFIG_OVERRIDES are under them.
        run: directory of a run that is to be resumed.

    Raises:
        ValueError: the file or a setting cannot be read, or is not a setting.
    """
    given = parse_config_overrides([])
    for section, name, text in parse_overrides(overrides):
        given[f"{section}.{name}"] = text if REFERENCE.fullmatch(text) else json.loads(text)
    try:
        data: Any = load_config(path)
        for name, value in given.items():
            section, _, setting = name.rpartition(".")
            section_of(data, section)[setting] = value
        data = Config(data).interpolate()
    except (OSError, UnicodeDecodeError, ValueError, ConfigParserError) as error:
        raise ValueError(f"Cannot read the config {path}: {error}") from error
    return assemble(data, run)


def resolve(config: PretrainConfig) -> tuple[dict[str, CorpusReader], Any]:
    """Make what a config names: its corpus readers, and the set-up of its logger or None.

    Raises:
        ValueError: a function is not registered, its settings are wrong, or it is of another kind.
    """
    sources = {}
    for name in CORPORA:
        if name in config.corpora:
            sources[name] = _made(f"corpora.{name}", config.corpora[name])
            if not isinstance(sources[name], CorpusReader):
                raise ValueError(
                    f"Config: [corpora.{name}] names '{config.corpora[name]['@readers']}', which "
                    f"does not read texts for pretraining; take spacy-elmo.Texts.v1 or "
                    f"spacy-elmo.Shards.v1."
                )
    logger = config.training.logger
    return sources, None if logger is None else _made("training.logger", logger)


def _made(name: str, block: dict[str, Any]) -> Any:
    key = name.rpartition(".")[2]
    try:
        return registry.resolve({key: block})[key]
    except (ValueError, TypeError, ImportError) as error:
        raise ValueError(f"Config: [{name}] cannot be made. {str(error).strip()}") from error
