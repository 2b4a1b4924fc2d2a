"""The shape of a run's biLM, from its config and from what it starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ..bilm.config import TOKEN_ENCODERS, BiLMConfig
from ..weights.layout import Weights


def model_shape(data: Mapping[str, Any] | None, start: Weights | None, state: str) -> BiLMConfig:
    """The model's shape: the one in the config, or that of the weights to start from."""
    started = None if start is None else replace(start.config(), initial_state=state)
    if data is None:
        if started is None:
            raise ValueError(
                "Config: there is no [model] section. Add one, or give weights (--from)."
            )
        data = started.to_dict()
    try:
        config = BiLMConfig.from_dict(data)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Config: [model] {error}") from error
    if config.token_encoder == "char_word_cnn":
        raise ValueError(
            "Config: [model] token_encoder is 'char_word_cnn', as in models of ELMoForManyLangs, "
            "which cannot be pretrained; components can fine-tune them (frozen = false)."
        )
    if start is None or started is None:
        return config
    differences = [
        f"{name}: {value!r}, not {getattr(started, name)!r}"
        for name in asdict(config)
        if (value := getattr(config, name)) != getattr(started, name)
        and not (value is None and name in TOKEN_ENCODERS["vectors"])  # sizes of the table
    ]
    if differences:
        raise ValueError(
            f"Config: [model] differs from the weights '{start.where}' to start from: "
            f"{'; '.join(differences)}. Remove the section: the shape comes with the weights."
        )
    return started
