"""The linear classifier of texts, through spaCy's component."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.training import Example
from thinc.api import use_ops

from spacy_elmo.weights.find import find_weights

from . import helpers
from .helpers import TEXTS, finite_difference, write_statistics, write_weights
from .learning import EMBED

LABELS = {"The bank raised its rates": "money", "They sat on the river bank": "river"}
MONEY = ["A bank raised rates", "Rates of the bank", "They raised their rates again"]
RIVER = ["A river bank", "They sat there, on the bank of a river", "We sat by the river"]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With statistics."""
    path = write_weights(tmp_path_factory.mktemp("weights") / "classifier")
    words = [text.split() for text in (*MONEY, *RIVER, *LABELS)]
    write_statistics(path, words * 3)
    return path


def make_nlp(weights: Path, factory: str = "textcat", tok2vec: Any = None) -> Language:
    model = {
        "@architectures": "spacy-elmo.TextCatLinear.v1",
        "exclusive_classes": factory == "textcat",
        "tok2vec": tok2vec or {"@architectures": "spacy-elmo.ElmoListener.v1"},
        "length": 64,
    }
    nlp = helpers.make_nlp(weights)
    nlp.add_pipe(factory, config={"model": model})
    return nlp


def examples(nlp: Language) -> list[Example]:
    """Of two classes; where there may be several, all are English, too."""
    pairs = [(text, "money") for text in MONEY] + [(text, "river") for text in RIVER]
    always = {"english": 1.0} if "textcat_multilabel" in nlp.pipe_names else {}
    return [
        Example.from_dict(
            nlp.make_doc(text),
            {"cats": {each: float(each == label) for each in LABELS.values()} | always},
        )
        for text, label in pairs
    ]


def train(nlp: Language, steps: int = 30) -> Language:
    batch = examples(nlp)
    optimizer = nlp.initialize(lambda: batch)
    for _ in range(steps):
        nlp.update(batch, sgd=optimizer)
    return nlp


def scores(nlp: Language, texts: Sequence[str] = (*LABELS, *TEXTS)) -> np.ndarray:
    return np.array([list(doc.cats.values()) for doc in nlp.pipe(texts)])


def expected_logits(nlp: Language, text: str) -> np.ndarray:
    """By the docstring, word by word."""
    model = nlp.get_pipe("textcat").model
    elmo, linear = model.get_ref("tok2vec"), model.get_ref("output_layer")
    words = model.layers[1].layers[0]
    statistics = nlp.get_pipe("elmo").bilm.statistics
    p: Counter[str] = Counter()
    for word, frequency in statistics.frequencies.items():
        p[word.lower()] += frequency
    doc = nlp(text)
    tokens = [token for token in doc if not token.is_space]
    mean = elmo.predict([doc])[0].mean(axis=0)
    bias = words.get_param("b")
    logits = linear.predict(15 * mean[None] / np.linalg.norm(mean))[0] + bias
    known = {token.lower_: -math.log(p[token.lower_] + 1e-5) for token in tokens}
    length = math.sqrt(sum(value**2 for value in known.values()))
    for word, value in known.items():
        keys = np.array([nlp.vocab.strings[word]], dtype="uint64")
        each = words.predict((keys, np.ones(1, dtype="f"), np.ones(1, dtype="int32")))[0]
        logits += (each - bias) * 15 / 2 * value / length
    return logits


def test_scores_are_those_of_the_docstring(weights: Path) -> None:
    nlp = train(make_nlp(weights))
    for text in (*LABELS, "A  text of the Bank \n with spaces", "Größe river"):
        logits = expected_logits(nlp, text)
        expected = np.exp(logits) / np.exp(logits).sum()
        np.testing.assert_allclose(list(nlp(text).cats.values()), expected, atol=1e-5)


def test_a_copy_is_initialized_alone(weights: Path) -> None:
    """It knows no biLM until it is linked, only the frequencies that it has learned with."""
    nlp = train(make_nlp(weights), steps=3)
    copied = pickle.loads(pickle.dumps(nlp))
    batch = examples(copied)
    with copied.select_pipes(disable=["elmo"]):
        copied.get_pipe("textcat").initialize(lambda: batch, nlp=copied)
    np.testing.assert_array_equal(scores(copied), 0.5)
    found = (each.get_pipe("textcat").model.attrs["frequencies"] for each in (copied, nlp))
    assert next(found) == next(found)


@pytest.mark.parametrize("factory", ["textcat", "textcat_multilabel"])
def test_learns_classes(weights: Path, factory: str) -> None:
    nlp = train(make_nlp(weights, factory), steps=80)
    for text, label in LABELS.items():
        cats = nlp(text).cats
        assert min(abs(score - 0.5) for score in cats.values()) > 0.1
        assert cats.pop("english", 1.0) > 0.6
        assert max(cats, key=cats.__getitem__) == label
    total = scores(nlp).sum(axis=1)
    assert (np.abs(total - 1).max() < 1e-5) == (factory == "textcat")


def test_gradients_are_those_of_the_cross_entropy(weights: Path) -> None:
    nlp = train(make_nlp(weights), steps=3)
    model, batch = nlp.get_pipe("textcat").model, examples(nlp)[:4]
    elmo, mix = nlp.get_pipe("elmo"), model.get_ref("tok2vec").layers[0]
    words, vectors = model.layers[1], model.get_ref("output_layer")
    vectors.get_param("W")[:] = np.random.default_rng(0).normal(size=vectors.get_param("W").shape)
    truth = np.array([list(example.y.cats.values()) for example in batch], dtype="float32")
    docs = [example.x for example in batch]

    def loss() -> float:
        read = [nlp.make_doc(doc.text) for doc in docs]
        elmo.set_annotations(read, elmo.predict(read))
        return float(-np.log((model.predict(read) * truth).sum(axis=1)).sum())

    elmo.update(batch)
    found, backprop = model.begin_update(docs)
    backprop(found - truth)
    elmo.batch.finish()
    for node, name in (
        (mix, "w"), (words.layers[0], "W"), (words.layers[0], "b"), (vectors, "W"), (vectors, "b")
    ):  # fmt: skip
        array, gradient = node.get_param(name), node.get_grad(name)
        place = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
        numeric = finite_difference(loss, array, place, 1e-3)
        assert abs(numeric) > 1e-2 and gradient[place] == pytest.approx(numeric, rel=0.03)
    assert np.abs(mix.get_grad("gamma")).max() < 1e-4  # only the direction of the mean counts


@given(text=st.text(max_size=60))
def test_any_text_has_scores(trained: Language, text: str) -> None:
    [values] = scores(trained, [text])
    assert np.isfinite(values).all()
    assert abs(values.sum() - bool(text)) < 1e-5  # of no tokens, spaCy's component has zeros
    np.testing.assert_allclose(scores(trained, [text, "", text])[::2], [values] * 2, atol=1e-6)


@pytest.fixture(scope="module")
def trained(weights: Path) -> Language:
    return train(make_nlp(weights))


def test_what_is_missing(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"needs the frequencies .*--statistics"):
        train(make_nlp(write_weights(tmp_path / "bare")))
    with pytest.raises(ValueError, match=r"needs the frequencies .*ElmoListener"):
        train(make_nlp(weights, tok2vec=EMBED))


def test_statistics_without_words(weights: Path, tmp_path: Path) -> None:
    """As of a text that has each word once."""
    path = write_weights(tmp_path / "once")
    write_statistics(path, [["A", "b"]])
    statistics = find_weights(path).statistics()
    assert statistics is not None and not statistics.frequencies
    assert scores(train(make_nlp(path)), ["A bank"]).sum() > 0.9


@pytest.mark.gpu
def test_on_a_gpu_as_on_a_cpu(weights: Path) -> None:
    expected = scores(train(make_nlp(weights)))
    with use_ops("cupy"):
        found = scores(train(make_nlp(weights)))
    np.testing.assert_allclose(found, expected, atol=1e-3)
