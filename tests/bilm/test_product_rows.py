"""Products of few different numbers of rows, whose results are the same."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.product_rows import in_rows, round_up


@given(st.integers(0, 2**20))
def test_numbers_are_rounded_up_by_little(n: int) -> None:
    assert n <= round_up(n) <= n * 17 / 16
    assert round_up(round_up(n)) == round_up(n)


def test_there_are_few_numbers() -> None:
    assert len({round_up(n) for n in range(4096)}) <= 160


@given(st.integers(0, 300))
def test_a_layer_sees_more_rows_and_returns_these(n: int) -> None:
    seen, x = [], torch.arange(2.0 * n, requires_grad=True).view(n, 2)

    def layer(rows: torch.Tensor) -> torch.Tensor:
        seen.append(len(rows))
        return 2 * rows + 1

    result = in_rows(layer, x)
    assert seen == [round_up(n)] and torch.equal(result, 2 * x + 1)
