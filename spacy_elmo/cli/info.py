"""``python -m spacy elmo info``: describes a biLM."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from wasabi import msg

from . import options


@options.app.command("info")
def info_cli(
    weights: Annotated[str, typer.Argument(help="Name or directory of a biLM", metavar="WEIGHTS")] = "en_sm",
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """
    Print information about a biLM.

    The output has the architecture, number of parameters, vocabulary size, initial state and card.
    The command checks that the stored tensors fit the architecture.
    """
    with options.report_errors("Cannot read the weights", as_json=as_json):
        data = describe(weights)
    if as_json:
        options.print_json(data)
        return
    for title, section in data.items():
        msg.divider(title.capitalize())
        msg.table([(name.replace("_", " "), _text(value)) for name, value in section.items()])


def describe(setting: str) -> dict[str, dict[str, Any]]:
    """Describe weights in sections, as plain JSON types.

    Raises:
        ValueError: the weights cannot be found or read, or are incomplete.
    """
    from ..bilm.kernel.library import load_kernel
    from ..weights.find import find_weights

    weights, kernel = find_weights(setting), load_kernel()
    model = weights.load()
    config, card = model.config, weights.card()
    # Buffers count too, such as a fixed table of static vectors.
    tensors = {name: part.state_dict().values() for name, part in model.named_children()}
    parts = {n: sum(t.numel() for t in x if t.is_floating_point()) for n, x in tensors.items()}
    state = config.initial_state
    if state == "warm":
        state += ", stored" if model.warm_h is not None else ", from the package's own passage"
    vectors = {"width": config.width, "layers": config.depth, "initial_state": state}
    architecture = config.to_dict()
    del architecture["initial_state"]
    n_bytes = sum(file.stat().st_size for file in weights.files())
    return {
        "weights": {"path": weights.where, "bytes": n_bytes},
        "parameters": {**parts, "total": sum(parts.values())},
        "vectors": {**vectors, "kernel": kernel and kernel.name},
        "architecture": architecture,
        "language model": {"words": len(weights.words()) if weights.has_head() else None},
        "card": {**card.meta, "documents": sorted(card.documents)},
    }


def _text(value: Any) -> str:
    """A value for a line of a table; a list of sizes becomes 3×64."""
    if value is None:
        return "none"
    if isinstance(value, dict):
        return str(value.get("name", value))
    if isinstance(value, list | tuple):
        are_sizes = all(isinstance(item, int) for item in value)
        return ("×" if are_sizes else ", ").join(map(_text, value))
    return f"{value:,}" if type(value) is int else str(value)
