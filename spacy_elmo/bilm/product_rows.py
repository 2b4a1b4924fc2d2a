"""Products whose rows do not depend on how many there are, and of few different numbers of rows.

MKL rounds products of fewer than four float32 rows otherwise than others: a word that is read alone
would differ from the same word among others. And oneDNN compiles a product for each number of rows
and keeps 1,024 of them: the memory of a long job would grow by a gigabyte.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional as F

FEWEST_ROWS = 8  # twice as many as needed here, for other CPUs


def round_up(n_rows: int, fewest: int = 0) -> int:
    """One of sixteen numbers in an octave, by a sixteenth larger at most, or the fewest."""
    return max(fewest, n_rows + -n_rows % (1 << max(0, n_rows.bit_length() - 5)))


def in_rows(layer: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """The output of a layer for the rows of ``x``, computed on a CPU with some rows more."""
    n_rows = len(x)
    n_more = 0 if x.is_cuda else round_up(n_rows, FEWEST_ROWS) - n_rows
    return layer(F.pad(x, (0, 0, 0, n_more)))[:n_rows]
