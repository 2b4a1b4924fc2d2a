from pathlib import Path

import pytest

from .helpers import SENTENCES, prose, write_text


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    """Two shards of training text, and a held-out one."""
    train = tmp_path / "train"
    train.mkdir()
    write_text(train / "a.txt", prose() + SENTENCES)
    write_text(train / "b.txt", prose()[::2] + SENTENCES)
    return train, write_text(tmp_path / "dev.txt", prose()[::3] + [["quite", "new", "."]])
