"""``python -m spacy elmo info``: what is to be known about weights."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer
from wasabi import msg

if TYPE_CHECKING:
    from torch import nn


def info_cli(
    # fmt: off
    weights: list[str] = typer.Argument(
        ...,
        help="Name, directory or zip of weights, or two files (options.json and HDF5)",
        metavar="WEIGHTS",
    ),
    as_json: bool = typer.Option(False, "--json", "-j", help="Print JSON"),
    # fmt: on
) -> None:
    """
    Print a biLM's architecture, parameters, vocabulary, state and card.

    Nothing is computed; what the files hold is compared with the architecture by names and shapes.
    """
    try:
        data = describe(weights if len(weights) > 1 else weights[0])
    except (ValueError, OSError) as error:
        msg.fail("Cannot read the weights", str(error), exits=1)
    if as_json:
        print(json.dumps(data, indent=2, ensure_ascii=False))
        return
    for title, section in data.items():
        if isinstance(section, dict):
            msg.divider(title.capitalize())
            msg.table([(name.replace("_", " "), _text(value)) for name, value in section.items()])


def describe(setting: str | list[str]) -> dict[str, Any]:
    """All of it as plain JSON types, in sections.

    Raises:
        ValueError: the weights cannot be found or read, or are no whole biLM.
    """
    import torch

    from ..bilm.find import find_weights
    from ..bilm.model import BiLM

    weights = find_weights(setting)
    config = weights.config()
    weights.check()
    with torch.device("meta"):
        model = BiLM(config)
    parts = {name: _numbers(part) for name, part in model.named_children()}
    state = config.initial_state
    if state == "warm":
        stored = weights.has_warm_state()
        state += ", stored" if stored else ", from the package's own passage"
    card = weights.card()
    return {
        "weights": {
            "path": weights.where,
            "layout": weights.layout,
            "bytes": sum(file.stat().st_size for file in weights.files()),
        },
        "parameters": {**parts, "together": sum(parts.values())},
        "vectors": {"width": config.width, "layers": config.n_layers + 1, "initial_state": state},
        "architecture": {
            name: value for name, value in config.to_dict().items() if name != "initial_state"
        },
        "language model": {"words": len(weights.words()) if weights.has_head() else None},
        "card": {**card.meta, "documents": sorted(card.documents)},
    }


def _numbers(module: nn.Module) -> int:
    """How many numbers a module has, those of a table that does not learn among them."""
    return sum(t.numel() for t in module.state_dict().values() if t.is_floating_point())


def _text(value: Any) -> str:
    """A value as one line of a table."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        return "; ".join(str(item.get("name", item)) for item in value)
    if isinstance(value, list | tuple):
        return ", ".join("×".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in value)
    return str(value)
