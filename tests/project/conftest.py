from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from .sentences import SCRIPTS


@pytest.fixture(scope="module")
def scripts() -> Iterator[None]:
    """The scripts import each other by their names."""
    sys.path.insert(0, str(SCRIPTS))
    yield
    sys.path.remove(str(SCRIPTS))
