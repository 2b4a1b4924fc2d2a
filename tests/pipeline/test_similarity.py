import itertools
import pickle
import warnings

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_elmo import set_vector_hooks
from spacy_elmo.pipeline.predictions import PASSES
from spacy_elmo.pipeline.similarity import ComparedRows, occurrence_vector
from spacy_elmo.pipeline.stored_vectors import get_compared

from .helpers import TEXTS, WIDTH, make_nlp, write_statistics, write_weights

P = WIDTH // 2
TEXT = "The bank  raised its rates.\n\nThey sat on the bank!"


@pytest.fixture(scope="module")
def compared_weights(tmp_path_factory):
    """Weights with statistics."""
    path = write_weights(tmp_path_factory.mktemp("compared") / "weights")
    words = [text.split() for text in TEXTS if text.split()]
    write_statistics(path, words * 3)
    return path


@pytest.fixture(scope="module")
def nlp(compared_weights):
    return make_nlp(compared_weights, store_layers=True)


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def unit(x):
    return x / np.linalg.norm(x)


def expected_token(nlp, doc, i, before, behind):
    """The vector of token ``i`` by the definition, from the raw layers."""
    statistics = nlp.get_pipe("elmo").shim.comparison.statistics
    layers = doc._.elmo_layers
    word = (layers[0, i, :P] - statistics.word_mean) @ statistics.whitening
    top = (layers[-1] - statistics.mean[-1]) / statistics.std[-1]
    left = np.zeros(P) if before is None else top[before, :P]
    right = np.zeros(P) if behind is None else top[behind, P:]
    return np.concatenate([unit(word), unit(np.concatenate([left, right]))])


def test_tokens(nlp):
    doc = nlp(TEXT)
    texts = [token.text for token in doc]
    assert texts[:5] == ["The", "bank", " ", "raised", "its"] and texts[6] == "."
    neighbours = {0: (None, 1), 1: (0, 3), 3: (1, 4), 6: (5, None), 8: (None, 9)}
    for i, (before, behind) in neighbours.items():
        expected = expected_token(nlp, doc, i, before, behind)
        np.testing.assert_allclose(doc[i].vector, expected, atol=3e-3)
        np.testing.assert_array_equal(doc[i]._.elmo, doc.tensor[i])
    assert not doc[2].vector.any() and not doc[2].has_vector
    similarity = doc[1].similarity(doc[12])
    assert similarity == pytest.approx(cosine(doc[1].vector, doc[12].vector), abs=1e-6)
    assert doc[1].similarity(doc[1]) == pytest.approx(1, abs=1e-6)


def test_docs_and_spans(nlp):
    doc = nlp(TEXT)
    comparison = nlp.get_pipe("elmo").shim.comparison
    frequency = dict(
        zip(comparison.statistics.words, comparison.statistics.frequencies, strict=True)
    )
    assert frequency["The"] > 0 and "!" not in frequency
    words = [token for token in doc if not token.is_space]
    rarity = [3e-4 / (3e-4 + frequency.get(token.text, 0)) for token in words]
    expected = unit(sum(r * token.vector[:P] for r, token in zip(rarity, words, strict=True)))
    np.testing.assert_allclose(doc.vector[:P], expected, atol=3e-3)
    assert not doc.vector[P:].any()
    span = doc[3:5]
    left, right = span.vector[P : 2 * P], span.vector[2 * P :]
    assert cosine(left, doc[3].vector[P : 2 * P]) == pytest.approx(1, abs=1e-5)
    assert cosine(right, doc[4].vector[2 * P :]) == pytest.approx(1, abs=1e-5)
    # ._.elmo is the mix all the same, with statistics or without.
    inside = [token.i for token in words]
    np.testing.assert_allclose(doc._.elmo, doc.tensor[inside].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(span._.elmo, doc.tensor[3:5].mean(axis=0), atol=1e-6)
    np.testing.assert_array_equal(doc[2:3]._.elmo, np.zeros(WIDTH))
    np.testing.assert_array_equal(nlp("")._.elmo, np.zeros(WIDTH))
    assert nlp("").vector.shape == (3 * P,)
    np.testing.assert_array_equal(doc[1:2].vector, doc[1].vector)
    np.testing.assert_array_equal(doc[2:3].vector, np.zeros(3 * P))
    sentence = doc[0:7]
    assert not sentence.vector[P:].any()
    assert doc.similarity(doc) == pytest.approx(1, abs=1e-6)
    assert nlp("").similarity(doc) == 0
    assert doc.vector_norm == pytest.approx(1, abs=1e-3)


def test_the_sentence_alone_has_the_same_vectors(nlp):
    doc, alone = nlp(TEXT), nlp("They sat on the bank!")
    for a, b in zip(doc[8:], alone, strict=True):
        np.testing.assert_allclose(a.vector, b.vector, atol=2e-3)


def test_occurrences_of_a_word(nlp):
    """Its context, the other words and the topic: the word itself is not in its vector."""
    doc = nlp("They sat on the bank!")
    rows = get_compared(doc)
    found = occurrence_vector(rows, 4)
    rows = rows.astype("float32")
    others = np.delete(rows, 4, axis=0)[:, :P].sum(axis=0)
    expected = [doc[4].vector[P:], others, rows[:, P:].sum(axis=0)]
    np.testing.assert_allclose(found, np.concatenate([unit(x) for x in expected]), atol=1e-3)
    alone = occurrence_vector(get_compared(nlp("bank")), 0)
    assert alone.shape == (5 * P,) and not alone.any()


@pytest.mark.parametrize("segments", ["auto", "doc"])
@pytest.mark.parametrize("store_layers", [False, True])
def test_parts_of_a_doc_have_the_same_vectors(compared_weights, segments, store_layers):
    """Also at their edges, inside of a sentence, and at whitespace."""
    settings = {"segments": segments, "max_words": 8, "store_layers": store_layers}
    nlp = make_nlp(compared_weights, batch_words=1, **settings)
    docs = [nlp.make_doc(text) for text in [TEXT, "", TEXT * 3 + " \n" * 9, "Two words", " "]]
    expected = list(make_nlp(compared_weights, **settings).pipe(doc.copy() for doc in docs))
    assert max(map(len, docs)) > 5 * PASSES
    outputs = nlp.get_pipe("elmo").predict(docs)
    for output, doc in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(output.tensor, doc.tensor, atol=1e-6)
        np.testing.assert_allclose(output.compared(), get_compared(doc), atol=2e-3)
        if store_layers:
            np.testing.assert_allclose(output.layers, doc._.elmo_layers, atol=1e-6)
        else:
            assert output.layers is None


def test_rows_are_computed_once_and_when_they_are_asked_for(nlp, monkeypatch):
    computed = []
    compute = ComparedRows.__call__
    monkeypatch.setattr(ComparedRows, "__call__", lambda self: computed.append(1) or compute(self))
    doc, other = nlp(TEXT), nlp("A river bank.")
    assert doc.has_extension("elmo") and doc._.elmo.any() and not computed
    assert doc.similarity(other) == other.similarity(doc) and doc[1].vector.any()
    assert len(computed) == 2
    loaded = pickle.loads(pickle.dumps(nlp("The bank.")))
    assert loaded[1].vector.any() and len(computed) == 3


def test_trained_vectors_stay_raw(nlp, compared_weights, tmp_path):
    raw = make_nlp(write_weights(tmp_path / "raw"))
    doc, other = nlp(TEXT), raw(TEXT)
    np.testing.assert_array_equal(doc.tensor, other.tensor)
    assert other.vector.shape == (WIDTH,) and doc.vector.shape == (3 * P,)
    words = [token.i for token in other if not token.is_space]
    np.testing.assert_allclose(other.vector, other.tensor[words].mean(axis=0), atol=1e-6)


def test_pickled_docs_bytes_and_docbin(nlp):
    doc = nlp(TEXT)
    vectors = [doc.vector, doc[1:4].vector, doc[1].vector]
    loaded = pickle.loads(pickle.dumps(doc))
    for obj, vector in zip((loaded, loaded[1:4], loaded[1]), vectors, strict=True):
        np.testing.assert_array_equal(obj.vector, vector)
    with pytest.warns(UserWarning, match="W109"):
        from_bytes = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    np.testing.assert_array_equal(from_bytes._.elmo, doc._.elmo)
    assert from_bytes[1].vector.shape != vectors[2].shape
    set_vector_hooks(from_bytes)
    np.testing.assert_array_equal(from_bytes.vector, vectors[0])
    np.testing.assert_array_equal(from_bytes[1].vector, vectors[2])
    assert from_bytes.similarity(doc) == pytest.approx(1, abs=1e-6)
    docbin = DocBin(store_user_data=True, docs=[doc, pickle.loads(pickle.dumps(doc))])
    for stored in DocBin().from_bytes(docbin.to_bytes()).get_docs(nlp.vocab):
        np.testing.assert_array_equal(stored[1:4]._.elmo, doc[1:4]._.elmo)
        set_vector_hooks(stored)
        np.testing.assert_array_equal(stored[1:4].vector, vectors[1])


@pytest.mark.filterwarnings("ignore:.*W101")  # layers are not joined
def test_parts_and_joined_docs(nlp):
    doc = nlp(TEXT)
    part = doc[8:13].as_doc()
    np.testing.assert_array_equal(part[4].vector, doc[12].vector)
    joined = Doc.from_docs([doc, nlp("A river bank.")])
    np.testing.assert_array_equal(joined[12:13]._.elmo, doc[12]._.elmo)
    set_vector_hooks(joined)
    np.testing.assert_array_equal(joined[12:13].vector, doc[12].vector)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[8:10])
    assert len(doc.vector) == 3 * P and doc[8].vector.any()
    np.testing.assert_array_equal(doc[11].vector, joined[12:13].vector)


def test_a_part_that_is_retokenized(nlp):
    """It has no compared rows then, rather than those of other tokens."""
    part = nlp(TEXT)[8:13].as_doc()
    with part.retokenize() as retokenizer:
        retokenizer.merge(part[1:3])
    with pytest.raises(ValueError, match="a part of another one, was retokenized"):
        _ = part._.elmo


def test_saved_pipelines_keep_the_statistics(nlp, tmp_path):
    nlp.to_disk(tmp_path / "saved")
    expected = nlp(TEXT).vector
    np.testing.assert_array_equal(spacy.load(tmp_path / "saved")(TEXT).vector, expected)
    copied = pickle.loads(pickle.dumps(nlp))
    np.testing.assert_array_equal(copied(TEXT).vector, expected)


def compared_cosine(a, b):
    """Of the words alone if one of them has no context."""
    n_words = len(a) // 3
    if not (a[n_words:].any() and b[n_words:].any()):
        a, b = a[:n_words], b[:n_words]
    return cosine(a, b)


def test_a_doc_and_a_token_are_compared_by_their_words(nlp):
    """A word of a sentence is as similar to a Doc of that word alone as one can be."""
    bank = nlp("The bank raised its rates.")[1]
    assert nlp("bank").similarity(bank) == pytest.approx(1, abs=1e-3)
    assert bank.similarity(nlp("bank")[:]) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("has_statistics", [False, True])
def test_every_pair_of_a_doc_a_span_and_a_token(compared_weights, tmp_path, has_statistics):
    """One symmetric cosine, without any warning; 0 if there is no word."""
    nlp = make_nlp(compared_weights if has_statistics else write_weights(tmp_path / "plain"))
    doc, other = nlp(TEXT), nlp("A river bank.")
    empty = [nlp(""), nlp("  "), doc[3:3], doc[2:3], doc[2]]
    objects = [doc, doc[3:5], doc[12], other, other[0:2], other[2], *empty]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for a, b in itertools.product(objects, repeat=2):
            found = a.similarity(b)
            assert type(found) is float and found == b.similarity(a)
            if any(x is y for x in (a, b) for y in empty):
                assert found == 0
            else:
                assert found == pytest.approx(compared_cosine(a.vector, b.vector), abs=1e-5)


def test_a_doc_without_its_hooks(nlp):
    doc = nlp(TEXT)
    with pytest.warns(UserWarning, match="W109"):
        from_bytes = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    for other in (from_bytes, from_bytes[3:5], from_bytes[1]):
        with pytest.raises(ValueError, match=r"spacy_elmo\.set_vector_hooks\(doc\) on its Doc"):
            doc.similarity(other)
    set_vector_hooks(from_bytes)
    assert doc[1].similarity(from_bytes[1]) == pytest.approx(1, abs=1e-6)


def test_a_lexeme_has_no_context(nlp):
    """And Lexemes have no hooks: spaCy compares their static vectors, or the words."""
    doc = nlp(TEXT)
    for obj in (doc, doc[3:5], doc[0]):
        with pytest.raises(ValueError, match="lexeme 'bank', which has no context"):
            obj.similarity(nlp.vocab["bank"])
    assert nlp.vocab["bank"].similarity(doc[1]) == 1
    with pytest.raises(ValueError, match="E010"):
        nlp.vocab["river"].similarity(doc[1])
    with pytest.raises(
        ValueError, match=r"lexeme 'bank', which has no context.*nlp\('bank'\)\[0\]"
    ):
        nlp(TEXT)[1].similarity(nlp.vocab["bank"])
