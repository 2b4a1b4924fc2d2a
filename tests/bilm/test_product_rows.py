"""Products of few different numbers of rows, whose results are the same."""

from __future__ import annotations

import pytest
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


@pytest.mark.parametrize(("n_in", "n_out"), [(96, 512), (512, 128), (2048, 32)])
def test_a_row_is_the_same_among_any_number(n_in: int, n_out: int) -> None:
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(n_in, n_out), torch.randn(500, n_in)
    expected = in_rows(layer, x)
    for n in (*range(1, 40), 64, 100, 257):
        assert torch.equal(in_rows(layer, x[:n]), expected[:n])
