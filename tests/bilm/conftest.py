from __future__ import annotations

from collections.abc import Iterator

import pytest

from spacy_elmo.bilm.kernel.library import load_kernel


@pytest.fixture
def kernel() -> Iterator[None]:
    """A test that needs the kernel, and may choose another instruction set for it."""
    if load_kernel() is None:
        pytest.skip("there is no kernel")
    yield
    load_kernel.cache_clear()
