"""A learning rate of its own for the biLM, by a factor."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from thinc.api import Optimizer


@contextlib.contextmanager
def scaled_learn_rate(optimizer: Optimizer, factor: float) -> Iterator[None]:
    """Multiply an optimizer's learning rate inside a ``with`` block.

    Scaling the gradients would not do: the size of Adam's steps does not depend on theirs.
    """
    if factor == 1:
        yield
        return
    learn_rate = optimizer.learn_rate
    optimizer.learn_rate = learn_rate * factor
    try:
        yield
    finally:
        optimizer.learn_rate = learn_rate
