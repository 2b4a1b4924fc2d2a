import dataclasses
import itertools
import pickle
import shutil
import warnings
from unicodedata import normalize

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_elmo.pipeline.bilm_layer import PASSES
from spacy_elmo.pipeline.doc_output import compared_rows
from spacy_elmo.pipeline.similarity import occurrence_vector
from spacy_elmo.weights.find import find_weights
from spacy_elmo.weights.layout import STATISTICS

from .helpers import (
    CONFIG,
    TEXTS,
    TOLERANCE,
    WIDTH,
    make_nlp,
    max_difference,
    write_statistics,
    write_weights,
)

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
    return make_nlp(compared_weights, store=["layers"])


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def unit(x):
    return x / np.linalg.norm(x)


def expected_token(nlp, doc, i, before, behind):
    """The vector of token ``i`` by the definition, from the raw layers."""
    statistics = nlp.get_pipe("elmo").bilm.statistics
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


def test_docs_and_spans(nlp):
    doc = nlp(TEXT)
    statistics = nlp.get_pipe("elmo").bilm.statistics
    frequency = statistics.frequencies
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
    np.testing.assert_allclose(span._.elmo, doc.tensor[3:5].mean(axis=0), atol=1e-6)
    assert nlp("").vector.shape == (3 * P,)
    np.testing.assert_array_equal(doc[1:2].vector, doc[1].vector)
    np.testing.assert_array_equal(doc[2:3].vector, np.zeros(3 * P))
    sentence = doc[0:7]
    assert not sentence.vector[P:].any()
    assert doc.vector_norm == pytest.approx(1, abs=1e-3)


def test_statistics_have_the_form_in_which_words_are_read(tmp_path):
    config = dataclasses.replace(CONFIG, unicode_normalization="NFC")
    path, texts = write_weights(tmp_path / "nfc", config=config), {}
    for form in ("NFC", "NFD"):
        texts[form] = [[normalize(form, word) for word in ("the", "naïve", "Größe", "the")]]
    read = find_weights(path).load().char_cnn.to_ids.read
    write_statistics(path, map(read, texts["NFC"] + texts["NFD"] * 2))
    nlp = make_nlp(path)
    statistics = find_weights(path).statistics()
    assert statistics.frequencies == {"the": 0.5, "naïve": 0.25, "Größe": 0.25}
    one, other = (compared_rows(nlp(Doc(nlp.vocab, *words))) for words in texts.values())
    np.testing.assert_array_equal(one, other)


def test_occurrences_of_a_word(nlp):
    """Its context, the other words and the topic: the word itself is not in its vector."""
    doc = nlp("They sat on the bank!")
    rows = compared_rows(doc)
    found = occurrence_vector(rows, 4)
    rows = rows.astype("float32")
    others = np.delete(rows, 4, axis=0)[:, :P].sum(axis=0)
    expected = [doc[4].vector[P:], others, rows[:, P:].sum(axis=0)]
    np.testing.assert_allclose(found, np.concatenate([unit(x) for x in expected]), atol=1e-3)
    alone = occurrence_vector(compared_rows(nlp("bank")), 0)
    assert alone.shape == (5 * P,) and not alone.any()


@pytest.mark.parametrize("segments", ["auto", "doc"])
@pytest.mark.parametrize("store", [[], ["layers"]])
def test_parts_of_a_doc_have_the_same_vectors(compared_weights, segments, store):
    """Also at their edges, inside of a sentence, and at whitespace."""
    settings = {"segments": segments, "max_words": 8, "store": store}
    nlp = make_nlp(compared_weights, batch_words=1, **settings)
    docs = [nlp.make_doc(text) for text in [TEXT, "", TEXT * 3 + " \n" * 9, "Two words", " "]]
    expected = list(make_nlp(compared_weights, **settings).pipe(doc.copy() for doc in docs))
    assert max(map(len, docs)) > 5 * PASSES
    for output, doc in zip(nlp.get_pipe("elmo").predict(docs), expected, strict=True):
        assert max_difference([output.vectors], [doc.tensor]) <= TOLERANCE
        np.testing.assert_allclose(output.compared.rows, compared_rows(doc), atol=2e-3)
        if store:
            assert max_difference([output.layers], [doc._.elmo_layers]) <= TOLERANCE
        else:
            assert output.layers is None


def test_docs_that_have_travelled(nlp):
    """Hooks carry what they compare; where they are lost spaCy warns, and of a part they raise."""
    doc = nlp(TEXT)
    objects = doc, doc[0:2], doc[1]
    vectors = [obj.vector for obj in objects]
    for arrived in (pickle.loads(pickle.dumps(doc)), doc.copy(), doc.copy().copy()):
        for obj, vector in zip((arrived, arrived[0:2], arrived[1]), vectors, strict=True):
            np.testing.assert_array_equal(obj.vector, vector)
            assert obj.similarity(doc[1]) == pytest.approx(doc[1].similarity(obj))
        assert arrived[0:4].as_doc()[0].text == doc[0].text  # spaCy asks for its vector
    part = doc[0:4].as_doc()
    for read in (lambda: part.vector, lambda: part[1].similarity(doc)):
        with pytest.raises(ValueError, match=r"no ELMo vectors: .* it is a part"):
            read()
    assert nlp(part)[1].vector.any()
    assert len(pickle.dumps(doc)) < 40_000  # without the statistics
    with pytest.warns(UserWarning, match="W109"):
        from_bytes = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert not from_bytes.user_hooks
    unread = Doc(nlp.vocab).from_bytes(doc.to_bytes(exclude=["user_hooks"]))
    with pytest.raises(ValueError, match="Docs from bytes"):
        doc.similarity(unread)
    np.testing.assert_array_equal(nlp(from_bytes)[1].vector, vectors[2])
    [stored] = DocBin(docs=[doc]).get_docs(nlp.vocab)
    with pytest.warns(UserWarning, match="W00[78]"):
        stored.similarity(nlp("A river bank."))


def test_merged_tokens(nlp):
    doc, before = nlp(TEXT), nlp(TEXT)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[8:10])
    assert len(doc.vector) == 3 * P and doc[8].vector.any()
    np.testing.assert_array_equal(doc[11].vector, before[12].vector)


@pytest.mark.parametrize("std", [1e-30, 1e-6])
def test_a_dimension_that_hardly_varies(nlp, compared_weights, tmp_path, std):
    """And NumPy's own settings of errors."""
    weights = shutil.copytree(compared_weights, tmp_path / "weights")
    statistics = find_weights(weights).statistics()
    changed = np.where(np.arange(WIDTH) == 3, np.float32(std), statistics.std)
    data = dataclasses.replace(statistics, std=changed.astype("f")).to_bytes()
    (weights / STATISTICS).write_bytes(data)
    with np.errstate(all="raise"):
        for each in (nlp, make_nlp(weights)):
            docs = list(each.pipe([TEXT, "A river bank.", "", "bank"]))
            for doc in docs:
                for obj in (doc, *doc):
                    assert np.isfinite(obj.vector).all()
                    assert np.isfinite(obj.similarity(docs[0][1]))


def compared_cosine(a, b):
    """Of the words alone if one of them has no context."""
    n_words = len(a) // 3
    if not (a[n_words:].any() and b[n_words:].any()):
        a, b = a[:n_words], b[:n_words]
    return cosine(a, b)


@pytest.mark.parametrize("has_statistics", [False, True])
def test_every_pair_of_a_doc_a_span_and_a_token(compared_weights, tmp_path, has_statistics):
    """One symmetric cosine, without any warning; 0 if there is no word."""
    nlp = make_nlp(compared_weights if has_statistics else write_weights(tmp_path / "plain"))
    read_before_the_weights = nlp("")
    doc, other = nlp(TEXT), nlp("A river bank.")
    assert read_before_the_weights.vector.shape == doc.vector.shape
    empty = [read_before_the_weights, nlp("  "), doc[3:3], doc[2:3], doc[2]]
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
    if has_statistics:
        with pytest.raises(ValueError, match="through the same pipeline"):
            doc.similarity(spacy.blank("en")(TEXT))


def test_a_lexeme_has_no_context(nlp):
    doc = nlp(TEXT)
    for obj in (doc, doc[3:5], doc[0]):
        with pytest.raises(ValueError, match=r"E010|Cannot compare"):
            obj.similarity(nlp.vocab["bank"])
