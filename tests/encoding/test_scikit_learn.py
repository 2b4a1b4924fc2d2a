"""An encoder is a function for scikit-learn's own transformer of functions."""

# ruff: noqa: E402

from __future__ import annotations

import pickle

import pytest

from spacy_elmo import Encoder

from ..pipeline.helpers import TOLERANCE, max_difference

pytest.importorskip("sklearn")
pandas = pytest.importorskip("pandas")

from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

MUSIC, TRAVEL = ["Play some jazz", "A loud song", "Play a song"], ["Book a flight", "The flight"]
TEXTS, LABELS = [*MUSIC, *TRAVEL] * 3, [*["music"] * 3, *["travel"] * 2] * 3
FRAME = pandas.DataFrame({"text": TEXTS, "price": 0.1})


def test_a_pipeline(weights: str) -> None:
    """Which can be cloned and pickled; the encoder is a parameter as any other."""
    encoder = Encoder(weights, level="documents")
    columns = make_column_transformer(
        (FunctionTransformer(encoder), "text"), ("passthrough", ["price"])
    )
    pipeline = make_pipeline(columns, LogisticRegression(C=10, max_iter=1000))
    fitted = pickle.loads(pickle.dumps(clone(pipeline).fit(FRAME, LABELS)))
    assert fitted.predict(FRAME).tolist() == LABELS
    assert max_difference([fitted[0].transform(FRAME)[:, :-1]], [encoder(TEXTS)]) <= TOLERANCE
    top = Encoder(weights, layers="top", level="documents")
    pipeline.set_params(columntransformer__functiontransformer__func=top)
    other = pipeline.fit(FRAME, LABELS)[0].transform(FRAME)
    assert max_difference([other[:, :-1]], [top(TEXTS)]) <= TOLERANCE
