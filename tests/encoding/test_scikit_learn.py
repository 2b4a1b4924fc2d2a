"""An encoder is a transformer of scikit-learn."""

# ruff: noqa: E402

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spacy_elmo import Encoder

from ..pipeline.helpers import N_LAYERS, TOLERANCE, WIDTH, max_difference

pytest.importorskip("sklearn")
pandas = pytest.importorskip("pandas")

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

MUSIC, TRAVEL = ["Play some jazz", "A loud song", "Play a song"], ["Book a flight", "The flight"]
TEXTS, LABELS = [*MUSIC, *TRAVEL] * 3, [*["music"] * 3, *["travel"] * 2] * 3
FRAME = pandas.DataFrame({"text": TEXTS, "price": range(len(TEXTS))})


@pytest.fixture
def encoder(weights: str) -> Encoder:
    return Encoder(weights, level="documents")


def test_a_pipeline(encoder: Encoder) -> None:
    vectors = encoder(TEXTS)
    for texts in (TEXTS, FRAME["text"], FRAME[["text"]], np.array(TEXTS, dtype=object)):
        classifier = make_pipeline(encoder, LogisticRegression(C=10)).fit(texts, LABELS)
        assert classifier.predict(texts).tolist() == LABELS
        assert max_difference([classifier[:-1].transform(texts)], [vectors]) <= TOLERANCE
    assert "Encoder" in classifier._repr_html_()
    alone = make_pipeline(encoder)  # features that are written to a table, say
    assert np.array_equal(alone.fit(TEXTS).transform(TEXTS), alone.fit_transform(TEXTS))
    check_is_fitted(encoder)  # though it has learnt nothing
    both = make_union(encoder, FunctionTransformer(encoder)).fit_transform(TEXTS)
    assert max_difference([both], [np.hstack([vectors, vectors])]) <= TOLERANCE


@pytest.mark.parametrize("column", ["text", [0]])
def test_a_column_transformer(encoder: Encoder, column: Any) -> None:
    """One row for each text, whether it hands over a Series or a table."""
    features = ColumnTransformer(
        [("elmo", encoder, column), ("number", StandardScaler(), ["price"])]
    )
    found = features.fit_transform(FRAME)
    assert found.shape == (len(TEXTS), WIDTH + 1)
    assert max_difference([found[:, :WIDTH]], [encoder(TEXTS)]) <= TOLERANCE
    names = features.get_feature_names_out()
    assert [names[0], names[WIDTH - 1], names[-1]] == [
        "elmo__elmo0", f"elmo__elmo{WIDTH - 1}", "number__price"
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"with the columns \['text', 'price'\]"):
        ColumnTransformer([("elmo", encoder, ["text", "price"])]).fit_transform(FRAME)


def test_a_clone_has_the_settings(encoder: Encoder, weights: str) -> None:
    for each in (encoder, Encoder(Path(weights), layers="top", dtype="float16", lang="en")):
        copy = clone(each)
        assert copy is not each and copy == each and copy.get_params() == each.get_params()
    assert encoder.get_params() == {
        "weights": weights, "pipeline": None, "layers": "mix", "level": "documents",
        "dtype": "float32", "lang": None,
    }  # fmt: skip


def test_settings_change_what_is_computed(encoder: Encoder, weights: str) -> None:
    mix = encoder(TEXTS)
    assert encoder.set_params(layers="all") is encoder
    every = encoder.transform(TEXTS)
    assert every.shape == (len(TEXTS), N_LAYERS * WIDTH) and len(mix) == len(TEXTS)
    assert np.array_equal(every.reshape(-1, N_LAYERS, WIDTH), encoder(TEXTS))
    assert len(encoder.get_feature_names_out()) == N_LAYERS * WIDTH
    assert encoder.transform([]).shape == (0, N_LAYERS * WIDTH)
    top = Encoder(weights, layers="top", level="documents")
    assert np.array_equal(encoder.set_params(layers="top")(TEXTS), top(TEXTS))
    for changes, message in [
        ({"layer": "top"}, r"unknown settings \['layer'\]"),
        ({"layers": "both", "dtype": "float16"}, "it must be 'mix', 'top' or 'all'"),
        ({"pipeline": "p"}, "drop --weights"),
    ]:
        with pytest.raises(ValueError, match=message):
            encoder.set_params(**changes)
    with pytest.raises(AttributeError, match="Change the setting dtype by set_params"):
        encoder.dtype = "float16"
    assert encoder == top


@pytest.mark.parametrize("level", ["tokens", "sentences"])
def test_texts_with_several_vectors_are_no_rows(weights: str, level: str) -> None:
    encoder = Encoder(weights, level=level)
    for call in (encoder.fit, encoder.transform, encoder.fit_transform):
        with pytest.raises(ValueError, match=f"level is '{level}'; .*each text: 'documents'"):
            call(TEXTS)
