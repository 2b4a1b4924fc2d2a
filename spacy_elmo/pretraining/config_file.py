"""The config of a run as JSON, and settings from the command line that override it.

`elmo pretrain` reads a config as spaCy does (see `cli.pretrain_config`), and writes it as JSON,
which is read without spaCy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..util.files import read_json
from .config import PretrainConfig, needs_spacy

CONFIG = "pretrain.json"  # in the directory of a run


def read_config(
    path: Path, overrides: Mapping[str, Any] | None = None, resumed: Path | None = None
) -> PretrainConfig:
    """Read a config that `elmo pretrain` has written.

    Args:
        path: the JSON file.
        overrides: settings by ``section.name``.
        resumed: directory of a run to resume; see `build_config`.

    Raises:
        ValueError: the file or a setting cannot be read, or is not a setting.
    """
    if path.suffix == ".cfg":
        raise needs_spacy(f"'{path}' has variables and functions", f"give the {CONFIG} it writes")
    data = read_json(path)
    override(data, overrides or {})
    return build_config(data, resumed)


def build_config(data: dict[str, Any], resumed: Path | None) -> PretrainConfig:
    """The config of sections of plain types.

    Args:
        data: the sections.
        resumed: directory of a run to resume. It no longer needs the weights and vectors that it
            started from, and its own config provides the [model] if this one has none.

    Raises:
        ValueError: a setting is wrong.
    """
    if resumed is not None:
        paths = {**data.get("paths", {}), "weights": None, "vectors": None}
        subwords = paths.pop("subwords", None)
        data = {**data, "paths": paths}
        if "model" not in data or subwords is not None:
            own = read_json(resumed / CONFIG).get("model")
            if not isinstance(own, dict):
                raise ValueError(f"{resumed / CONFIG}: there is no [model] section.")
            data["model"] = {**own, **data.get("model", {})}
    return PretrainConfig.from_dict(data)


def override(data: dict[str, Any], overrides: Mapping[str, Any]) -> None:
    """Put settings over those of a config, in new sections where it has none.

    Args:
        data: the sections.
        overrides: settings by ``section.name``.

    Raises:
        ValueError: a section is a setting.
    """
    for path, value in overrides.items():
        section = data
        *parts, setting = path.split(".")
        for part in parts:
            section = section.setdefault(part, {})
            if not isinstance(section, dict):
                raise ValueError(
                    f"Config: '{part}' of [{'.'.join(parts)}] is a setting, not a section."
                )
        section[setting] = value


def split_overrides(arguments: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Take the overrides out of a command line.

    Args:
        arguments: among them ``--section.name value`` or ``--section.name=value``, in JSON; what is
            not JSON is a string.

    Returns:
        The settings by ``section.name``, and the other arguments.

    Raises:
        ValueError: an override has no value.
    """
    overrides: dict[str, Any] = {}
    others = []
    rest = iter(arguments)
    for argument in rest:
        key, equals, text = argument.partition("=")
        if not (key.startswith("--") and "." in key):
            others.append(argument)
            continue
        value: Any = text if equals else next(rest, None)
        if value is None:
            raise ValueError(f"The argument '{argument}' has no value.")
        with suppress(ValueError):
            value = json.loads(value)
        overrides[key.removeprefix("--").replace("-", "_")] = value
    return overrides, others
