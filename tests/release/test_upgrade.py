"""What a release has saved, later ones load."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import spacy

from spacy_elmo.about import __version__

from .saved_pipeline import FOLDER, TEXTS


def test_each_release_left_a_pipeline() -> None:
    assert (FOLDER / __version__).is_dir()


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_a_pipeline_of_a_release(path: Path) -> None:
    """It loads, and predicts what it did then."""
    expected = np.load(path / "expected.npz")
    docs = list(spacy.load(path).pipe(TEXTS))
    vectors = np.concatenate([doc.tensor for doc in docs])
    np.testing.assert_allclose(vectors, expected["vectors"], rtol=0, atol=1e-5)
    assert [token.tag_ for doc in docs for token in doc] == expected["tags"].tolist()
