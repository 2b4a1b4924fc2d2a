"""A biLM's config as a published ``options.json``: the same facts under other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...bilm.config import BiLMConfig
from ...util.settings import shorten

LSTM = ("dim", "projection_dim", "n_layers", "use_skip_connections", "cell_clip", "proj_clip")
CHAR_CNN = ("activation", "filters", "n_highway", "max_characters_per_token")
OURS = ("initial_state", "unicode_normalization", "lower_capitals")  # others ignore their block
REQUIRED = ("dim", "projection_dim", "activation", "filters", "char_dim")


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
    return {
        "bidirectional": True,
        "lstm": {name: getattr(config, name) for name in LSTM},  # null too: bilm-tf needs the key
        "char_cnn": {
            **{name: getattr(config, name) for name in CHAR_CNN},
            "embedding": {"dim": config.char_dim},
            "filters": [list(pair) for pair in config.filters],
            "n_characters": 262,
        },
        "spacy_elmo": {name: getattr(config, name) for name in OURS},
    }


def from_options(options: Mapping[str, Any]) -> BiLMConfig:
    """Read a published ``options.json``, training or inference form, or one of `to_options`.

    Raises:
        ValueError: the model is not a char-CNN biLM, or a setting is missing or wrong.
    """
    if options.get("bidirectional", True) is False:
        raise ValueError(
            "options.json: 'bidirectional' is false; only bidirectional models can be loaded."
        )
    lstm, cnn = _block(options, "lstm"), _block(options, "char_cnn")
    ours = _block({"spacy_elmo": {}, **options}, "spacy_elmo")
    given: dict[str, Any] = dict.fromkeys(REQUIRED)  # None is refused
    given |= {name: lstm[name] for name in LSTM if name in lstm}
    given |= {name: cnn[name] for name in CHAR_CNN if cnn.get(name) is not None}
    given["char_dim"] = _block(cnn, "embedding").get("dim")
    # The published models were trained with a state that was carried from sentence to sentence.
    given |= {name: ours[name] for name in OURS if name in ours}
    return BiLMConfig(**{"use_skip_connections": False, "initial_state": "warm", **given})


def _block(options: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    block = options.get(name)
    if not isinstance(block, Mapping):
        raise ValueError(
            f"options.json: '{name}' is {shorten(block)}, not a block. Only biLMs with a character "
            f"CNN can be loaded, none that read word ids."
        )
    return block
