from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from .sentences import SCRIPTS


@pytest.fixture(scope="module")
def scripts() -> Iterator[None]:
    """The scripts import each other by their names."""
    sys.path.insert(0, str(SCRIPTS))
    yield
    sys.path.remove(str(SCRIPTS))


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a script that ends with an error, and returns what it says, on one line."""

    def run(main: Callable[..., None], *arguments: object, **options: object) -> str:
        with pytest.raises(SystemExit):
            main(*arguments, **options)
        return " ".join("".join(capsys.readouterr()).split())

    return run
