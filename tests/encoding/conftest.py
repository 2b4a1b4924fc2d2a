from __future__ import annotations

from pathlib import Path

import pytest

from ..pipeline.helpers import write_weights


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_weights(tmp_path_factory.mktemp("weights") / "tiny"))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Lines with one sentence, several or none, and one of white space."""
    path = tmp_path / "text.txt"
    path.write_text(
        "The bank raised its rates. They sat on the bank!\n\nPlay!\n  \t \nA  b 안녕 .\n\n",
        encoding="utf-8",
    )
    return path
