"""A biLM's config as a published ``options.json``: the same facts under other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...bilm.config import BiLMConfig
from ...util.settings import shorten

# The paths of the settings of a `BiLMConfig`.
PATHS = {
    "dim": "lstm.dim",
    "projection_dim": "lstm.projection_dim",
    "n_layers": "lstm.n_layers",
    "use_skip_connections": "lstm.use_skip_connections",
    "cell_clip": "lstm.cell_clip",
    "proj_clip": "lstm.proj_clip",
    "activation": "char_cnn.activation",
    "char_dim": "char_cnn.embedding.dim",
    "filters": "char_cnn.filters",
    "n_highway": "char_cnn.n_highway",
    "max_characters_per_token": "char_cnn.max_characters_per_token",
    "initial_state": "spacy_elmo.initial_state",  # others ignore this block
}
# The values of settings that a file leaves out. The published models were trained with a state
# carried from sentence to sentence, so theirs is warm.
DEFAULTS = {
    "n_layers": 1,
    "use_skip_connections": False,
    "cell_clip": None,
    "proj_clip": None,
    "n_highway": 0,
    "max_characters_per_token": 50,
    "initial_state": "warm",
}


def to_options(config: BiLMConfig) -> dict[str, Any]:
    """A config in the layout of a published ``options.json``.

    Raises:
        ValueError: there is no char-CNN.
    """
    if config.token_encoder != "char_cnn":
        raise ValueError(
            f"The published layout is for biLMs with a char-CNN; this one has token_encoder = "
            f"{config.token_encoder!r}, which no other implementation reads. Write the native "
            f"layout (--to native)."
        )
    options: dict[str, Any] = {"bidirectional": True}
    for name, path in PATHS.items():
        *blocks, key = path.split(".")
        block = options
        for part in blocks:
            block = block.setdefault(part, {})
        block[key] = getattr(config, name)  # also where it is None: bilm-tf needs the key
    options["char_cnn"]["n_characters"] = 262
    options["char_cnn"]["filters"] = [list(pair) for pair in config.filters]
    return options


def from_options(options: Mapping[str, Any]) -> BiLMConfig:
    """Read a published ``options.json``, training or inference form, or one of `to_options`.

    Raises:
        ValueError: the model is not a char-CNN biLM, or a setting is missing or wrong.
    """
    if "char_cnn" not in options:
        raise ValueError(
            "options.json: there is no 'char_cnn' block, so this model reads word ids, not "
            "characters. Only biLMs with a character CNN can be loaded."
        )
    if options.get("bidirectional", True) is False:
        raise ValueError(
            "options.json: 'bidirectional' is false; only bidirectional models can be loaded."
        )
    return BiLMConfig(**{name: _find(options, name) for name in PATHS})


def _find(options: Mapping[str, Any], name: str) -> Any:
    block, value = "", options
    for part in PATHS[name].split("."):
        if not isinstance(value, Mapping):
            raise ValueError(f"options.json: '{block}' is {shorten(value)}, not a block.")
        if part not in value and name in DEFAULTS:
            return DEFAULTS[name]
        if part not in value:
            raise ValueError(f"options.json: the setting '{part}' is missing.")
        block, value = part, value[part]
    return 0 if name == "n_highway" and value is None else value
