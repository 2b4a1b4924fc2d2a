"""The project's package, imported as its scripts import it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ...pipeline.helpers import write_weights
from ...threads import one_thread  # noqa: F401  # for every test here

sys.path.append(str(Path(__file__).parents[3] / "project" / "six_tasks"))


@pytest.fixture(scope="package")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of .spacy files for each task."""
    from .helpers import COMPONENTS, write_tiny

    folder = tmp_path_factory.mktemp("corpora")
    for task in COMPONENTS:
        write_tiny(folder, task)
    return folder


@pytest.fixture(scope="package")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those of a tiny biLM."""
    return write_weights(tmp_path_factory.mktemp("weights") / "tiny")
