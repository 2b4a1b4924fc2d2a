"""What was read of a Doc stands beside it; ``doc.tensor`` alone travels, known by its checksum."""

from __future__ import annotations

import gc
import pickle
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from thinc.api import to_numpy, use_ops

from .helpers import N_LAYERS, TOLERANCE, WIDTH, add_elmo, make_nlp
from .learning import listening, make_examples, make_pipeline, started
from .test_links import add_tok2vec

TEXT = "The bank raised its rates. They sat on the bank!"
MISSING = pytest.raises(ValueError, match=r"no ELMo vectors.*Read doc\.tensor, run .*store = \[")


def by_bytes(doc: Doc) -> Doc:
    return Doc(doc.vocab).from_bytes(doc.to_bytes(exclude=["user_hooks"]))


def by_pickle(doc: Doc) -> Doc:
    return pickle.loads(pickle.dumps(doc))


def by_docbin(doc: Doc) -> Doc:
    return next(DocBin(docs=[doc], store_user_data=True).get_docs(doc.vocab))


WAYS = [by_bytes, by_pickle, Doc.copy]
Way = Callable[[Doc], Doc]


def replaced(doc: Doc) -> Doc:
    """As a component of the same width does it."""
    doc.tensor = np.ones((len(doc), WIDTH), dtype="float32")
    return doc


def rows(doc: Doc) -> np.ndarray:
    return np.stack([token._.elmo for token in doc])


@pytest.fixture
def doc(nlp: Language) -> Doc:
    return nlp(TEXT)


def test_the_same_array_until_the_tensor_is_replaced(nlp: Language, doc: Doc) -> None:
    assert all(np.shares_memory(token._.elmo, doc.tensor) for token in doc)
    expected, similarity = doc.tensor.copy(), doc[1].similarity(doc[9])
    mean, part = doc._.elmo, doc[1:4]._.elmo
    replaced(doc)
    np.testing.assert_array_equal(rows(doc), expected)
    np.testing.assert_array_equal(doc._.elmo, mean)
    np.testing.assert_array_equal(doc[1:4].vector, part)
    np.testing.assert_array_equal(doc[1].vector, expected[1])
    assert doc[1].similarity(doc[9]) == similarity
    again = nlp(doc)
    np.testing.assert_array_equal(rows(again), expected)
    assert np.shares_memory(again[0]._.elmo, again.tensor)


@pytest.mark.parametrize("way", WAYS)
def test_docs_travel(doc: Doc, way: Way) -> None:
    expected = rows(doc)
    arrived = way(way(doc))
    np.testing.assert_array_equal(rows(arrived), expected)
    with MISSING:
        rows(replaced(arrived))
    with MISSING:
        rows(way(replaced(doc)))


def test_a_tensor_of_the_same_width_behind_it(weights: Path) -> None:
    nlp = make_nlp(weights)
    add_tok2vec(nlp)
    nlp.initialize()
    expected = make_nlp(weights)(TEXT).tensor
    doc = nlp(TEXT)
    assert doc.tensor.shape == expected.shape and not np.array_equal(doc.tensor, expected)
    np.testing.assert_array_equal(rows(doc), expected)
    for other in (by_docbin(doc), *nlp.pipe([TEXT], n_process=2)):
        with MISSING:
            rows(other)


@pytest.mark.parametrize("way", [by_docbin, *WAYS])
def test_stored(weights: Path, way: Way) -> None:
    nlp = make_nlp(weights, store=["layers", "vectors"])
    doc = nlp(TEXT)
    arrived = way(replaced(way(doc)))
    np.testing.assert_array_equal(rows(arrived), rows(doc))
    np.testing.assert_array_equal(arrived._.elmo_layers, doc._.elmo_layers)
    for name in ("elmo_layers", "elmo_vectors"):
        assert isinstance(arrived.user_data["._.", name, None, None], np.ndarray)
    again = make_nlp(weights)(arrived)  # which stores nothing
    assert not {key[1] for key in again.user_data} & {"elmo_layers", "elmo_vectors"}


def test_what_travels_is_small(nlp: Language) -> None:
    doc = nlp(TEXT * 20)
    for serialize in (lambda: doc.to_bytes(exclude=["user_hooks"]), lambda: pickle.dumps(doc)):
        with_checksum, user_data = len(serialize()), dict(doc.user_data)
        doc.user_data.clear()
        assert 0 < with_checksum - len(serialize()) < 100
        doc.user_data.update(user_data)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_merged(nlp: Language, doc: Doc, is_replaced: bool) -> None:
    expected = doc.tensor.copy()
    if is_replaced:
        replaced(doc)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
        retokenizer.merge(doc[3:6])
    found = rows(doc)
    np.testing.assert_array_equal(found, expected[[1, 2, 5, *range(6, len(expected))]])
    if not is_replaced:
        np.testing.assert_array_equal(found, doc.tensor)
    assert doc[0].vector.shape == (WIDTH,)
    with MISSING:
        rows(by_bytes(doc))


def test_stored_for_other_tokens(weights: Path) -> None:
    """As many as before."""
    nlp = make_nlp(weights, store=["vectors", "layers"])
    doc = by_docbin(nlp(TEXT))
    n_tokens = len(doc)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
        retokenizer.split(doc[3], ["it", "s"], heads=[(doc[3], 1), doc[4]])
    assert len(doc) == n_tokens
    with MISSING:
        doc[1]._.elmo  # noqa: B018
    with pytest.raises(ValueError, match="no ELMo layers, or was retokenized since"):
        doc._.elmo_layers  # noqa: B018


def test_samples_of_an_initialization_hide_nothing(weights: Path) -> None:
    """And a batch goes on with a reading of the same tokens alone."""
    nlp = make_pipeline(weights, listening())
    examples = make_examples(nlp)
    doc = examples[0].predicted
    nlp.get_pipe("elmo")(doc)
    expected = doc._.elmo_layers.copy()
    nlp.initialize(lambda: examples)
    np.testing.assert_array_equal(doc._.elmo_layers, expected)
    assert doc.similarity(doc) == pytest.approx(1)


def test_the_biLM_goes_with_its_pipeline(weights: Path) -> None:
    nlp = make_nlp(weights)
    doc = nlp(TEXT)
    bilm = weakref.ref(nlp.get_pipe("elmo").bilm)
    expected = doc[0]._.elmo.copy()
    del nlp
    gc.collect()
    assert bilm() is None
    np.testing.assert_array_equal(doc[0]._.elmo, expected)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_split(nlp: Language, doc: Doc, is_replaced: bool) -> None:
    if is_replaced:
        replaced(doc)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[3:5])
        retokenizer.split(doc[0], ["T", "he"], heads=[(doc[0], 1), doc[1]])
    for read in (lambda: doc[0]._.elmo, lambda: doc[0].vector):
        with pytest.raises(ValueError, match=r"tokens were split .* Run the 'elmo'"):
            read()
    assert rows(nlp(doc)).shape == (len(doc), WIDTH)


@pytest.mark.parametrize("store", [[], ["layers"]])
def test_joined_docs_and_parts(weights: Path, store: list[str]) -> None:
    nlp = make_nlp(weights, store=store)
    doc = nlp(TEXT)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        joined = Doc.from_docs([nlp(text) for text in ("", "The bank.", " Größe 🎉", "")])
    said = {"W101" in str(each.message) and "elmo_layers" in str(each.message) for each in caught}
    assert said == ({True} if store else set())  # spaCy says what it drops
    for new in (joined, doc[2:6].as_doc(), doc[2:6].as_doc(copy_user_data=True)):
        assert len(new.tensor) == len(new)
        with MISSING:
            new[0]._.elmo  # noqa: B018
        with pytest.raises(ValueError, match=r'store = \["layers"\].* cut or joined from others'):
            new._.elmo_layers  # noqa: B018
        with pytest.raises(ValueError, match="no ELMo vectors"):
            doc[2:6].as_doc()[0].vector  # noqa: B018
        assert rows(nlp(new)).shape == (len(new), WIDTH)


noted: list[weakref.ref] = []


@Language.component("note_vectors")
def note_vectors(doc: Doc) -> Doc:
    noted.append(weakref.ref(doc[0]._.elmo.base))
    return doc


@pytest.mark.parametrize(
    ("attrs", "order"),
    [(["_.elmo", "tensor"], ["elmo"]), (["tensor", "_.elmo"], ["elmo", "tok2vec"])],
)
def test_doc_cleaner(weights: Path, attrs: list[str], order: list[str]) -> None:
    """The vectors go, and their memory."""
    nlp = spacy.blank("en")
    for name in order:
        add_tok2vec(nlp) if name == "tok2vec" else add_elmo(nlp, weights)
    nlp.add_pipe("note_vectors")
    nlp.add_pipe("doc_cleaner", config={"attrs": dict.fromkeys(attrs)})
    nlp.initialize()
    doc = nlp(TEXT)
    gc.collect()
    assert noted[-1]() is None and not doc.user_data
    for obj in (doc, doc[0:2], doc[0]):
        with MISSING:
            obj._.elmo  # noqa: B018


def test_nothing_holds_a_doc(weights: Path) -> None:
    """Neither what was read of it, nor its hooks, nor a batch whose gradients are still awaited."""
    nlp, *_ = started(weights, listening(), frozen=False, store=["layers", "vectors"])
    refs = []
    for text in (TEXT, "", "One."):
        doc = nlp(text)
        assert doc._.elmo_layers.shape == (N_LAYERS, len(doc), WIDTH)
        refs.append(weakref.ref(doc))
    elmo = nlp.get_pipe("elmo")
    examples = make_examples(nlp)
    for some in (examples, make_examples(nlp)):
        elmo.update(some, losses={})
    refs += [weakref.ref(example.predicted) for example in examples]  # of the batch before the last
    del doc, examples
    gc.collect()
    assert [each() for each in refs] == [None] * len(refs)


def test_listeners_of_docs_whose_tensor_was_replaced(weights: Path) -> None:
    nlp, *_ = started(weights, listening())
    doc = nlp(TEXT)
    expected = [token.tag_ for token in doc]
    assert [token.tag_ for token in nlp.get_pipe("tagger")(replaced(doc))] == expected


@pytest.mark.gpu
def test_on_a_gpu(weights: Path) -> None:
    """CuPy's arrays, which spaCy merges in place."""
    expected = rows(make_nlp(weights)(TEXT))
    with use_ops("cupy"):
        nlp = make_nlp(weights, store=["vectors"])
        doc = nlp(TEXT)
        for way in (lambda doc: doc, by_docbin, *WAYS):
            found = way(nlp(TEXT))
            vectors = np.stack([to_numpy(token._.elmo) for token in found])
            assert np.abs(vectors - expected).max() <= TOLERANCE
        with doc.retokenize() as retokenizer:
            retokenizer.merge(doc[0:2])
        merged = np.stack([to_numpy(token._.elmo) for token in doc])
        assert np.abs(merged - expected[1:]).max() <= TOLERANCE
