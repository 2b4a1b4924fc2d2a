"""A fixture for the folders whose tests train and read tiny models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """The models here are tiny: threads would only wait for each other.

    And runs are the same to the last bit only where the number of threads is the same.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
