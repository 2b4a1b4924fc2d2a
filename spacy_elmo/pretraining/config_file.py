"""Config files in spaCy's syntax, and settings from the command line that override them.

`read_config` needs no spaCy: it reads sections of settings, and references that are a whole
value. Where there is spaCy, its own reader is used (see `cli.pretrain_config`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from configparser import ConfigParser
from pathlib import Path
from typing import Any

from ..util.files import reading
from .config import PretrainConfig

CONFIG = "config.cfg"  # in the directory of a run
REFERENCE = re.compile(r"\$\{([\w.]+)[.:](\w+)\}")


def read_config(
    path: Path, overrides: Sequence[str] = (), resumed: Path | None = None
) -> PretrainConfig:
    """Read a config file and override its settings from the command line.

    Args:
        path: sections of ``name = value``, values in JSON; the value ``${section.name}`` is
            that of another setting, after the overrides.
        overrides: as on the command line, ``--section.name value`` or ``--section.name=value``.
        resumed: directory of a run to resume; see `build_config`.

    Raises:
        ValueError: the file or a setting cannot be read, or is not a setting.
    """
    return build_config(_read_sections(path, overrides), resumed)


def _read_sections(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The sections of a config file, after the overrides."""
    parser = ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    with reading("the config", str(path)):  # which may be a pipe
        parser.read_string(path.read_text(encoding="utf-8"))
    texts = {section: dict(parser[section]) for section in parser.sections()}
    for section, name, text in parse_overrides(overrides):
        texts.setdefault(section, {})[name] = text
    data: dict[str, Any] = {}
    for section, settings in texts.items():
        block = find_section(data, section)
        for name, text in settings.items():
            block[name] = _value(section, name, text, texts)
    return data


def find_section(data: dict[str, Any], path: str) -> dict[str, Any]:
    """The section or block of a name such as ``corpora.train``, made if it is missing.

    Raises:
        ValueError: there is a setting of this name.
    """
    for name in path.split("."):
        data = data.setdefault(name, {})
        if not isinstance(data, dict):
            raise ValueError(f"Config: '{name}' of [{path}] is a setting, not a section.")
    return data


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
        subwords = data.get("paths", {}).pop("subwords", None)
        for name in ("weights", "vectors"):
            data.get("paths", {}).pop(name, None)
        if "model" not in data or subwords is not None:
            own = _read_sections(resumed / CONFIG)
            if "model" not in own:
                raise ValueError(f"{resumed / CONFIG}: there is no [model] section.")
            data["model"] = {**own["model"], **data.get("model", {})}
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
    except (ValueError, RecursionError):
        advice = "is not JSON; strings need double quotes"
        if REFERENCE.fullmatch(text):
            advice = "refers to a setting that is missing or not JSON"
        raise ValueError(f"Config: [{section}] {name} = {text} {advice}.") from None


def start_from(weights: str | None) -> list[str]:
    """The override that ``--from`` stands for."""
    return [] if weights is None else [f"--paths.weights={json.dumps(weights)}"]


def split_overrides(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command line into overrides, each as ``--section.name=value``, and other arguments.

    Raises:
        ValueError: an override has no value.
    """
    overrides, others = [], []
    rest = iter(arguments)
    for argument in rest:
        key, equals, _ = argument.partition("=")
        if not (key.startswith("--") and "." in key):
            others.append(argument)
        elif equals:
            overrides.append(argument)
        elif (value := next(rest, None)) is not None:
            overrides.append(f"{argument}={value}")
        else:
            raise ValueError(f"The argument '{argument}' has no value.")
    return overrides, others


def parse_overrides(arguments: Sequence[str]) -> list[tuple[str, str, str]]:
    """``--section.name value`` arguments as (section, name, JSON); values that are not JSON are
    taken as strings.

    Raises:
        ValueError: an argument has another form.
    """
    overrides, others = split_overrides(arguments)
    if others:
        raise ValueError(
            f"Unknown argument '{others[0]}'; after CONFIG and OUT, override settings of the "
            f"config as --section.name value."
        )
    parsed = []
    for override in overrides:
        key, _, value = override.removeprefix("--").partition("=")
        section, _, name = key.rpartition(".")
        try:
            json.loads(value)
        except ValueError:
            value = value if REFERENCE.fullmatch(value) else json.dumps(value)
        parsed.append((section, name.replace("-", "_"), value))
    return parsed
