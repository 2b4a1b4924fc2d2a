"""How much a run reads and trains."""

from __future__ import annotations

from typing import Any, NamedTuple


class Size(NamedTuple):
    """A size of the project.

    Attributes:
        train, dev, test: largest number of Docs in each set.
        paragraphs: largest number of paragraphs of raw text.
        steps: largest number of training steps of a task.
        eval_every: steps between its evaluations.
        min_action_freq: how often a label must occur for the parser to learn it.
        bilm: size of a biLM that is pretrained, see ``elmo init-config``.
        bilm_steps: steps of its pretraining; adapting takes at most one epoch.
    """

    train: int | None = None
    dev: int | None = None
    test: int | None = None
    paragraphs: int | None = None
    steps: int = 20_000
    eval_every: int = 200
    min_action_freq: int = 30
    bilm: str = "sm"
    bilm_steps: int = 25_000


SIZES = {
    "tiny": Size(60, 20, 20, 600, 60, 20, 1, "xs", 60),
    "small": Size(500, 100, 500, 20_000, 400, 100, 5, "xs", 800),
    "full": Size(),
}


def find_size(name: str) -> Size:
    """A size by its name.

    Raises:
        ValueError: there is none of the name.
    """
    if name not in SIZES:
        raise ValueError(f"There is no size '{name}'; known are {', '.join(SIZES)}.")
    return SIZES[name]


def thin_out(items: list[Any], most: int | None) -> list[Any]:
    """At most so many items, evenly spaced."""
    if most is None or len(items) <= most:
        return items
    return [items[i * len(items) // most] for i in range(most)]
