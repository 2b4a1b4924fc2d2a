"""The shape of a run's biLM, from its config and from what it starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ..bilm.config import TOKEN_ENCODERS, BiLMConfig
from ..weights.layout import Weights
from .data.floret import floret_settings


def with_subwords(
    model: Mapping[str, Any] | None, path: str | None, n_epochs: int = 0
) -> Mapping[str, Any] | None:
    """The section [model] of a config, with subwords if the run is to start with new ones.

    Args:
        model: the section.
        path: a file that floret wrote, whose settings they have.
        n_epochs: passes of floret over the text; if there are any, they have the default settings
            where the section has none.

    Raises:
        ValueError: it is no such file, or [model.subwords] differs from it.
    """
    if path is None:
        return {"subwords": {}, **(model or {})} if n_epochs else model
    model, found = dict(model or {}), asdict(floret_settings(Path(path)))
    given = model.get("subwords") or {}
    different = {name: value for name, value in given.items() if found.get(name) != value}
    if different:
        raise ValueError(
            f"Config: [model.subwords] has {different}, but [paths] subwords, '{path}', was made "
            f"with {found}; remove the block, it follows from the file."
        )
    return {**model, "subwords": found}


def model_shape(data: Mapping[str, Any] | None, start: Weights | None, state: str) -> BiLMConfig:
    """The model's shape: the one in the config, or that of the weights to start from.

    A biLM that has no subwords gets those of the config.
    """
    started = None if start is None else replace(start.config(), initial_state=state)
    if started is not None and set(data or {}) <= {"subwords"}:
        data = {**started.to_dict(), **(data or {})}
    if data is None:
        raise ValueError("Config: there is no [model] section. Add one, or give weights (--from).")
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
    if started.subwords is None:
        started = replace(started, subwords=config.subwords)
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
