from weakref import WeakSet

import numpy as np
import spacy
import torch
from spacy.tokens import Doc
from thinc.api import Model

from spacy_elmo.architectures import Elmo

from .helpers import N_LAYERS, TOLERANCE, WIDTH, finite_difference, make_nlp, max_difference
from .learning import bilm_of

TEXTS = ["The bank raised its rates. They sat\non the bank of the river!", "", "Play!", " \n "]


def make_layer(weights, **settings) -> Model:
    return Elmo(weights=str(weights), **settings).get_ref("bilm")


def make_docs(texts=TEXTS) -> list[Doc]:
    nlp = spacy.blank("en")
    return [nlp(text) for text in texts]


def read(layer: Model, sentences: list[list[str]]) -> list[np.ndarray]:
    with torch.no_grad():
        return [part.numpy() for part in bilm_of(layer).read(sentences)[0]]


def test_layers_are_those_of_the_bilm(weights):
    layer = make_layer(weights)
    docs = make_docs()
    outputs = layer.predict(docs)
    assert [y.shape for y in outputs] == [(N_LAYERS, len(doc), WIDTH) for doc in docs]
    words = [token.text for token in docs[0] if not token.is_space]
    first, second, third = read(layer, [words[:6], words[6:], ["Play", "!"]])
    expected = np.concatenate([first, second], axis=1)
    places = [token.i for token in docs[0] if not token.is_space]
    assert np.abs(outputs[0][:, places] - expected).max() <= TOLERANCE
    assert np.abs(outputs[2] - third).max() <= TOLERANCE
    assert (outputs[0][:, [token.i for token in docs[0] if token.is_space]] == 0).all()
    assert (outputs[3] == 0).all()


def test_windows_are_those_of_the_bilm(weights):
    doc = make_docs(["a b c d e f g h i j k l"])[0]
    (output,) = make_layer(weights, max_words=8, segments="doc").predict([doc])
    words = [token.text for token in doc]
    first, last = read(make_layer(weights), [words[:8], words[4:]])
    # Both windows hold e, f, g and h; two of them are kept from each.
    expected = np.concatenate([first[:, :6], last[:, 2:]], axis=1)
    assert np.abs(output - expected).max() <= TOLERANCE


def test_gradients(weights):
    """Of some numbers of each parameter, in float64, through windows and whitespace."""
    layer = make_layer(weights, frozen=False, max_words=8)
    bilm = bilm_of(layer).double()
    docs = make_docs(["The bank of the river and\n the bank in the town. Yes!", "", "Play! "])
    rng = np.random.default_rng(0)
    outputs, backprop = layer.begin_update(docs)
    factors = [rng.normal(size=y.shape) for y in outputs]

    def loss() -> float:
        bilm.clear_caches()  # NumPy changes the weights
        return sum(float((y * f).sum()) for y, f in zip(layer.predict(docs), factors, strict=True))

    assert backprop(factors) == docs
    n_checked = 0
    for name, parameter in bilm.named_parameters():
        values, gradient = parameter.detach().numpy(), parameter.grad.numpy()
        flat = np.argsort(-np.abs(gradient), axis=None)[:2].tolist() + [rng.integers(values.size)]
        for i in flat:
            place = np.unravel_index(i, values.shape)
            expected = finite_difference(loss, values, place, 1e-3)
            # The outputs are rounded to float32 on their way.
            np.testing.assert_allclose(
                gradient[place], expected, rtol=2e-3, atol=2e-3, err_msg=name
            )
            n_checked += abs(expected) > 0.1
    assert n_checked > len(list(bilm.parameters()))


def test_a_copy_of_frozen_weights_is_cast_and_moved_by_itself(weights):
    """Also while both read from the same caches, which are warm."""
    layer, docs = make_layer(weights), make_docs()
    layer.predict(docs)
    layer.shims[0].bilm.cache.begin()
    before = layer.predict(docs)
    copied = layer.copy()
    assert max_difference(copied.predict(docs), before) == 0
    bilm_of(copied).double()
    assert max_difference(layer.predict(docs), before) == 0
    assert {p.dtype for p in bilm_of(layer).parameters()} == {torch.float32}
    copied.shims[0].to_device("cpu", -1)
    assert layer.shims[0].bilm.cache.is_on
    bilm_of(copied).to("meta")
    assert max_difference(layer.predict(docs), before) == 0


# Through the component, which gives the layer some of its Docs at a time


def test_no_more_docs_in_memory_than_are_read_at_once(weights):
    nlp = make_nlp(weights, batch_words=40)
    alive = WeakSet()
    most = 0
    for doc in nlp.pipe(["a b c d e f g h"] * 50, batch_size=1000):
        alive.add(doc)
        most = max(most, len(alive))
    assert most <= 4 * 10


def test_a_stream_is_taken_in_batches_of_docs(weights):
    nlp = make_nlp(weights)
    taken = []
    texts = (taken.append(text) or text for text in ["a b"] * 9)
    next(nlp.pipe(texts, batch_size=3))
    assert len(taken) == 3


def test_docs_that_fail_reach_the_error_handler(weights, monkeypatch):
    nlp = make_nlp(weights)
    failed = []
    nlp.set_error_handler(lambda name, pipe, docs, error: failed.append((name, len(docs), error)))
    elmo = nlp.get_pipe("elmo")
    set_annotations = elmo.set_annotations

    def fail_for_bad(docs, outputs):
        if any(doc.text == "bad" for doc in docs):
            raise ValueError("bad")
        set_annotations(docs, outputs)

    monkeypatch.setattr(elmo, "set_annotations", fail_for_bad)
    docs = list(nlp.pipe(["a", "b", "bad", "c", "d"], batch_size=2))
    assert [doc.text for doc in docs] == ["a", "b", "d"]
    [(name, n_docs, error)] = failed
    assert (name, n_docs, str(error)) == ("elmo", 2, "bad")
