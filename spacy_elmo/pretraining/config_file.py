"""Config files, in spaCy's syntax, and the settings of a command line that are put over them.

`read_config` is for where there is no spaCy: it reads sections of settings, and references that
are a whole value. With spaCy, its own reader of configs is used (see `cli.pretrain_config`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from pathlib import Path
from typing import Any

from .config import PretrainConfig

REFERENCE = re.compile(r"\$\{([\w.]+)[.:](\w+)\}")


def read_config(
    path: Path, overrides: Sequence[str] = (), run: Path | None = None
) -> PretrainConfig:
    """Read a config file and put command-line settings over it.

    Args:
        path: sections of ``name = value``, values in JSON; the value ``${section.name}`` is
            that of another setting, as it is after the overrides.
        overrides: as they stand on the command line, ``--section.name value`` or
            ``--section.name=value``.
        run: directory of a run that is to be resumed; it needs the weights or word vectors no
            more that it was started from, and has a [model] if the config has none.

    Raises:
        ValueError: the file or a setting cannot be read, or is not a setting.
    """
    parser = ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ConfigParserError) as error:
        raise ValueError(f"Cannot read the config {path}: {error}") from error
    texts = {section: dict(parser[section]) for section in parser.sections()}
    for section, name, text in parse_overrides(overrides):
        texts.setdefault(section, {})[name] = text
    data: dict[str, Any] = {}
    for section, settings in texts.items():
        inside = section_of(data, section)
        for name, text in settings.items():
            inside[name] = _value(section, name, text, texts)
    return assemble(data, run)


def section_of(data: dict[str, Any], path: str) -> dict[str, Any]:
    """The section or block of a name such as ``corpora.train``, made if it is not there.

    Raises:
        ValueError: there is a setting of this name.
    """
    for name in path.split("."):
        data = data.setdefault(name, {})
        if not isinstance(data, dict):
            raise ValueError(f"Config: '{name}' of [{path}] is a setting, not a section.")
    return data


def assemble(data: dict[str, Any], run: Path | None) -> PretrainConfig:
    """The config of sections of plain types.

    Args:
        data: the sections.
        run: see `read_config`.

    Raises:
        ValueError: a setting is wrong.
    """
    if run is not None:
        for name in ("weights", "vectors"):
            data.get("paths", {}).pop(name, None)
        if "model" not in data:
            data["model"] = read_config(run / "config.cfg", run=run).model.to_dict()
    return PretrainConfig.from_dict(data)


def _value(section: str, name: str, text: str, texts: Mapping[str, Mapping[str, str]]) -> Any:
    """The value of a setting's text."""
    followed = text
    for _ in range(10):  # a reference may lead to another, but not in a circle
        reference = REFERENCE.fullmatch(followed)
        if reference is None:
            break
        followed = texts.get(reference[1], {}).get(reference[2], "")
    try:
        return json.loads(followed)
    except ValueError:
        advice = "is not JSON; strings need double quotes"
        if REFERENCE.fullmatch(text):
            advice = "refers to what is not there, or not JSON"
        raise ValueError(f"Config: [{section}] {name} = {text} {advice}.") from None


def start_from(weights: str | None) -> list[str]:
    """The override that ``--from`` stands for."""
    return [] if weights is None else [f"--paths.weights={json.dumps(weights)}"]


def split_overrides(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """A command line parted into ``--section.name value`` settings and all else."""
    overrides, others = [], []
    rest = iter(arguments)
    for argument in rest:
        key, equals, _ = argument.partition("=")
        if not (key.startswith("--") and "." in key):
            others.append(argument)
            continue
        overrides.append(argument)
        if not equals:
            overrides += [value for value in [next(rest, None)] if value is not None]
    return overrides, others


def parse_overrides(arguments: Sequence[str]) -> list[tuple[str, str, str]]:
    """``--section.name value`` arguments as (section, name, JSON); values that are not JSON are
    taken as strings.

    Raises:
        ValueError: an argument is not of this form.
    """
    parsed = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        key, equals, text = argument.partition("=")
        section, dot, name = key.removeprefix("--").rpartition(".")
        if not key.startswith("--") or not dot:
            raise ValueError(
                f"Unknown argument '{argument}'; after CONFIG and OUT, settings of the config are "
                f"given as --section.name value."
            )
        if not equals:
            if not rest:
                raise ValueError(f"The argument '{argument}' has no value.")
            text = rest.pop(0)
        try:
            json.loads(text)
        except ValueError:
            text = text if REFERENCE.fullmatch(text) else json.dumps(text)
        parsed.append((section, name.replace("-", "_"), text))
    return parsed
