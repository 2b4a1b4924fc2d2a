"""Few different numbers of rows: oneDNN compiles a product for each, and keeps 1,024 of them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional as F


def round_up(n_rows: int) -> int:
    """One of sixteen numbers in an octave, by a sixteenth larger at most."""
    return n_rows + -n_rows % (1 << max(0, n_rows.bit_length() - 5))


def in_rows(layer: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """The output of a layer for the rows of ``x``, computed on a CPU with some rows more.

    Without these, the memory of a long job grows by a gigabyte.
    """
    n_rows = len(x)
    return layer(x if x.is_cuda else F.pad(x, (0, 0, 0, round_up(n_rows) - n_rows)))[:n_rows]
