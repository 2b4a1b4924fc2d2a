from pathlib import Path

import pytest
from spacy.language import Language

from .helpers import make_nlp, write_weights


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of random weights, which no test may change."""
    return write_weights(tmp_path_factory.mktemp("weights") / "tiny")


@pytest.fixture(scope="session")
def nlp(weights: Path) -> Language:
    """A pipeline of the component alone, which no test may change."""
    return make_nlp(weights)


@pytest.fixture
def own_weights(tmp_path: Path) -> Path:
    """The same weights, in a directory of the test's own."""
    return write_weights(tmp_path / "own")
