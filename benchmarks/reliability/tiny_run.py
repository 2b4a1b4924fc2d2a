"""The config of a pretraining of seconds, and commands of `spacy elmo` in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from thinc.api import Config

from spacy_elmo.cli import app


def write_config(path: Path, text: Path, **training: Any) -> None:
    """A config of a tiny biLM, which learns from a text and is measured by it."""
    model = {"filters": [[1, 4], [2, 6]], "projection_dim": 6, "dim": 8, "char_dim": 4}
    Config(
        {
            "paths": {"train": str(text), "dev": str(text)},
            "model": model,
            "softmax": {"kind": "full"},
            "vocab": {"min_count": 1},
            "training": training,
        }
    ).to_disk(path)


def elmo(*arguments: object) -> None:
    app([str(each) for each in arguments], standalone_mode=False)
