import subprocess
import sys

import numpy as np
import pytest
from spacy.tokens import Doc

from .helpers import N_LAYERS, TOLERANCE, WIDTH, make_nlp

TEXT = "The bank  raised its rates.\n\nThey sat on the bank!"


def test_means_leave_whitespace_out(nlp):
    doc = nlp(TEXT)
    spaces = [token.i for token in doc if token.is_space]
    assert len(spaces) == 2
    words = [token.i for token in doc if not token.is_space]
    assert np.abs(doc._.elmo - doc.tensor[words].mean(axis=0)).max() <= 1e-6
    assert np.abs(doc._.elmo - doc.tensor.mean(axis=0)).max() > 1e-3
    span = doc[1:5]
    assert np.abs(span._.elmo - doc.tensor[[1, 3, 4]].mean(axis=0)).max() <= 1e-6
    for obj in (doc[spaces[0] : spaces[0] + 1], doc[0:0], nlp(""), nlp(" \n")):
        np.testing.assert_array_equal(obj._.elmo, np.zeros(WIDTH))
        assert not obj.has_vector and obj.vector_norm == 0


def test_setting_is_refused(nlp):
    doc = nlp(TEXT)
    before = dict(doc.user_data)
    for obj in (doc, doc[0:2], doc[0]):
        with pytest.raises(ValueError, match="cannot be set"):
            obj._.elmo = np.zeros(WIDTH)
        with pytest.raises(ValueError, match="cannot be set"):
            obj._.elmo_layers = np.zeros((N_LAYERS, len(doc), WIDTH))
    assert doc.user_data == before


def test_layers(weights):
    nlp = make_nlp(weights, store=["layers"])
    doc = nlp(TEXT)
    layers = doc._.elmo_layers
    assert layers.shape == (N_LAYERS, len(doc), WIDTH)
    assert np.abs(layers.mean(axis=0) - doc.tensor).max() <= TOLERANCE
    half = WIDTH // 2
    np.testing.assert_array_equal(layers[0, :, :half], layers[0, :, half:])
    (first, second) = (token.i for token in doc if token.text == "bank")
    assert np.abs(layers[0, first] - layers[0, second]).max() <= TOLERANCE
    assert np.abs(layers[1:, first] - layers[1:, second]).max() > 1e-3
    assert nlp("")._.elmo_layers.shape == (N_LAYERS, 0, WIDTH)
    np.testing.assert_array_equal(doc[3]._.elmo_layers, layers[:, 3])
    np.testing.assert_array_equal(doc[3:6]._.elmo_layers, layers[:, 3:6])
    assert doc[0:0]._.elmo_layers.shape == (N_LAYERS, 0, WIDTH)


def test_layers_not_stored(nlp):
    doc = nlp(TEXT)
    for obj in (doc, doc[0:2], doc[0]):
        with pytest.raises(ValueError, match=r'store = \["layers"\]'):
            _ = obj._.elmo_layers


@pytest.mark.parametrize("vectors", ["auto", "elmo", "vocab"])
@pytest.mark.parametrize("has_vocab_vectors", [False, True])
def test_whose_vectors(weights, vectors, has_vocab_vectors):
    nlp = make_nlp(weights, vectors=vectors)
    if has_vocab_vectors:
        nlp.vocab.set_vector("bank", np.ones(5, dtype="float32"))
    doc = nlp("The bank\n raised")
    assert doc._.elmo.shape == (WIDTH,)
    if vectors == "elmo" or (vectors == "auto" and not has_vocab_vectors):
        for obj in (doc, doc[0:3], doc[1]):
            np.testing.assert_array_equal(obj.vector, obj._.elmo)
            assert obj.has_vector
    else:
        assert not (doc.user_hooks or doc.user_span_hooks or doc.user_token_hooks)
        if has_vocab_vectors:
            np.testing.assert_array_equal(doc[1].vector, np.ones(5))
            assert not doc[0].has_vector


def test_an_empty_doc_behind_a_tok2vec(weights):
    """Its vector has ELMo's width, whatever tensor it has; what comes from bytes is not ELMo's."""
    nlp = make_nlp(weights, vectors="vocab")
    doc = nlp("")
    assert Doc(nlp.vocab).from_bytes(doc.to_bytes())._.elmo.shape == (WIDTH,)
    doc.tensor = np.zeros((0, WIDTH + 1), dtype="float32")
    assert doc._.elmo.shape == (WIDTH,)
    with pytest.raises(ValueError, match="no ELMo vectors"):
        _ = Doc(nlp.vocab).from_bytes(doc.to_bytes())._.elmo


def test_a_users_own_extension_stays() -> None:
    code = (
        "from spacy.tokens import Doc; Doc.set_extension('elmo', default='mine'); "
        "import spacy; nlp = spacy.blank('en'); nlp.add_pipe('elmo'); "
        "print(nlp.make_doc('a bank')._.elmo)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).stdout == b"mine\n"
