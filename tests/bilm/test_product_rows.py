"""Products of few different numbers of rows, whose results are the same."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.product_rows import FEWEST_ROWS, in_rows, round_up


@given(st.integers(0, 2**20))
def test_numbers_are_rounded_up_by_little(n: int) -> None:
    assert n <= round_up(n) <= n * 17 / 16
    assert round_up(round_up(n)) == round_up(n)


@given(st.integers(0, 300), st.integers(0, 20))
def test_no_number_is_below_the_fewest(n: int, fewest: int) -> None:
    assert round_up(n, fewest) == max(fewest, round_up(n))


def test_there_are_few_numbers() -> None:
    assert len({round_up(n) for n in range(4096)}) <= 160


@given(st.integers(0, 300))
def test_a_layer_sees_more_rows_and_returns_these(n: int) -> None:
    seen, x = [], torch.arange(2.0 * n, requires_grad=True).view(n, 2)

    def layer(rows: torch.Tensor) -> torch.Tensor:
        seen.append(len(rows))
        return 2 * rows + 1

    result = in_rows(layer, x)
    assert seen == [round_up(n, FEWEST_ROWS)] and torch.equal(result, 2 * x + 1)


@pytest.mark.parametrize(("n_in", "n_out"), [(96, 512), (512, 128), (2048, 32)])
def test_a_row_is_the_same_among_any_number(n_in: int, n_out: int) -> None:
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(n_in, n_out), torch.randn(500, n_in)
    expected = in_rows(layer, x)
    for n in (*range(1, 40), 64, 100, 257):
        assert torch.equal(in_rows(layer, x[:n]), expected[:n])
