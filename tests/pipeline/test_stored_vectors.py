"""ELMo's vectors have a home of their own, whatever becomes of ``doc.tensor``."""

from __future__ import annotations

import gc
import pickle
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from thinc.api import to_numpy, use_ops

from .helpers import TOLERANCE, WIDTH, add_elmo, make_nlp
from .learning import listening, make_pipeline, start
from .test_links import add_tok2vec

TEXT = "The bank raised its rates. They sat on the bank!"


def by_bytes(doc: Doc) -> Doc:
    return Doc(doc.vocab).from_bytes(doc.to_bytes(exclude=["user_hooks"]))


def by_pickle(doc: Doc) -> Doc:
    return pickle.loads(pickle.dumps(doc))


def by_docbin(doc: Doc) -> Doc:
    return next(DocBin(docs=[doc], store_user_data=True).get_docs(doc.vocab))


WAYS = [by_bytes, by_pickle, by_docbin, Doc.copy]
Way = Callable[[Doc], Doc]


def replaced(doc: Doc) -> Doc:
    """As another component does it."""
    doc.tensor = np.ones((len(doc), 5), dtype="float32")
    return doc


def rows(doc: Doc) -> np.ndarray:
    return np.stack([token._.elmo for token in doc])


@pytest.fixture
def doc(nlp: Language) -> Doc:
    return nlp(TEXT)


def test_the_same_array_until_it_is_replaced(nlp: Language, doc: Doc) -> None:
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
@pytest.mark.parametrize("is_replaced", [False, True])
def test_docs_travel(doc: Doc, way: Way, is_replaced: bool) -> None:
    expected = rows(doc)
    arrived = way(way(replaced(doc) if is_replaced else doc))
    np.testing.assert_array_equal(rows(arrived), expected)
    assert arrived.tensor.shape == ((0,) if way is by_docbin else doc.tensor.shape)
    np.testing.assert_array_equal(rows(replaced(arrived)), expected)
    np.testing.assert_array_equal(rows(way(arrived)), expected)


def test_serialized_once(nlp: Language) -> None:
    """And a second time only if another component has replaced the tensor."""
    doc = nlp(TEXT * 20)
    own = doc.tensor.nbytes
    for serialize in (lambda: doc.to_bytes(exclude=["user_hooks"]), lambda: pickle.dumps(doc)):
        with_entry = len(serialize())
        entry = dict(doc.user_data)
        doc.user_data.clear()
        hook = doc.user_hooks.pop("elmo")
        assert with_entry - len(serialize()) < own / 3
        doc.user_data.update(entry)
        doc.user_hooks["elmo"] = hook
    before = len(doc.to_bytes(exclude=["user_hooks"]))
    doc.tensor = doc.tensor.copy() + 1
    assert len(doc.to_bytes(exclude=["user_hooks"])) - before == pytest.approx(own, abs=100)


@pytest.mark.parametrize("way", [by_bytes, by_pickle, Doc.copy])
def test_replaced_on_arrival(doc: Doc, way: Way) -> None:
    """What was serialized as doc.tensor is gone with it: another's is not taken for ELMo's."""
    arrived = way(doc)
    arrived.tensor = arrived.tensor[::-1]
    for read in (lambda: arrived[0]._.elmo, lambda: arrived._.elmo):
        with pytest.raises(ValueError, match="which was replaced since"):
            read()


@pytest.mark.parametrize("way", [by_bytes, by_pickle, Doc.copy])
def test_on_to_a_docbin(nlp: Language, way: Way) -> None:
    """As from `nlp.pipe(n_process=2)`, and before anybody has read the vectors that arrived."""
    expected = nlp(TEXT).tensor
    np.testing.assert_array_equal(rows(by_docbin(way(nlp(TEXT)))), expected)
    joined = Doc.from_docs([nlp(text) for text in (TEXT, "", TEXT)])
    np.testing.assert_array_equal(rows(by_docbin(way(joined))), np.concatenate([expected] * 2))
    merged = way(nlp(TEXT))
    with merged.retokenize() as retokenizer:
        retokenizer.merge(merged[1:3])
    stored = by_docbin(merged)
    np.testing.assert_array_equal(rows(stored), rows(merged))
    with pytest.raises(ValueError, match="which was replaced since"):
        rows(by_docbin(replaced(way(nlp(TEXT)))))


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("way", [lambda doc: doc, by_bytes, by_docbin])
def test_merged(nlp: Language, way: Way, is_replaced: bool) -> None:
    doc = way(replaced(nlp(TEXT)) if is_replaced else nlp(TEXT))
    expected = nlp(TEXT).tensor
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
        retokenizer.merge(doc[3:6])
    found = rows(doc)
    np.testing.assert_array_equal(found, expected[[1, 2, 5, *range(6, len(expected))]])
    np.testing.assert_array_equal(rows(doc), found)  # and again
    if way is not by_docbin:
        assert np.shares_memory(doc[0]._.elmo, doc.tensor) == (not is_replaced)


def test_merged_in_place(doc: Doc) -> None:
    """As spaCy does it with CuPy's arrays."""
    expected = np.delete(doc.tensor, 0, axis=0)
    tensor = doc.tensor
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    tensor[:-1] = tensor[1:].copy()
    doc.tensor = tensor[:-1]
    np.testing.assert_array_equal(rows(doc), expected)


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("way", [lambda doc: doc, by_bytes])
def test_split(nlp: Language, way: Way, is_replaced: bool) -> None:
    doc = way(replaced(nlp(TEXT)) if is_replaced else nlp(TEXT))
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[3:5])
        retokenizer.split(doc[0], ["T", "he"], heads=[(doc[0], 1), doc[1]])
    with pytest.raises(ValueError, match=r"retokenized .* Run the component on it again"):
        doc[0]._.elmo  # noqa: B018
    assert rows(nlp(doc)).shape == (len(doc), WIDTH)


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("way", [lambda doc: doc, by_bytes, by_docbin])
def test_joined(nlp: Language, way: Way, is_replaced: bool) -> None:
    docs = [nlp(text) for text in ("", "The bank.", "", " Größe 🎉", "It raised\n rates.", "")]
    expected = np.concatenate([doc.tensor for doc in docs])
    docs = [way(replaced(doc) if is_replaced else doc) for doc in docs]
    exclude = ["tensor"] if way is by_docbin else []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joined = Doc.from_docs(docs, exclude=exclude)
    np.testing.assert_array_equal(rows(joined), expected)
    if way is not by_docbin:
        assert np.shares_memory(joined[0]._.elmo, joined.tensor) == (not is_replaced)
    np.testing.assert_array_equal(rows(by_bytes(joined)), expected)
    unread = Doc.from_docs([*docs, nlp.make_doc("More.")], exclude=["tensor"])
    with pytest.raises(ValueError, match="joined from Docs that it has not all read"):
        unread[0]._.elmo  # noqa: B018


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("copy_user_data", [False, True])
@pytest.mark.parametrize("bounds", [(0, 2), (3, 6), (4, 4), (2, 12)])
def test_parts(doc: Doc, is_replaced: bool, copy_user_data: bool, bounds: tuple[int, int]) -> None:
    expected = doc.tensor[slice(*bounds)].copy()
    if is_replaced:
        doc.tensor = doc.tensor + 1
    part = doc[slice(*bounds)].as_doc(copy_user_data=copy_user_data)
    if is_replaced and not copy_user_data and len(part):
        with pytest.raises(ValueError, match="copy_user_data=True"):
            part[0]._.elmo  # noqa: B018
    else:
        assert np.array_equal([token._.elmo for token in part], expected) or not len(part)
        assert part.vector.shape == (WIDTH,)
        part.to_bytes(exclude=["user_hooks"])


def test_a_doc_of_another_pipeline(weights: Path) -> None:
    nlp = spacy.blank("en")
    add_tok2vec(nlp)
    add_elmo(nlp, weights)
    nlp.initialize()
    with nlp.select_pipes(disable="elmo"):
        doc = nlp(TEXT)
    assert doc.tensor.size
    with pytest.raises(ValueError, match="no ELMo vectors"):
        doc[0]._.elmo  # noqa: B018
    assert nlp(doc)[0]._.elmo.any()


def test_removed(doc: Doc) -> None:
    doc._.elmo = None
    assert not hasattr(doc._, "elmo")
    assert not doc.user_data and "elmo" not in doc.user_hooks
    for obj in (doc, doc[0:2], doc[0]):
        with pytest.raises(ValueError, match="no ELMo vectors"):
            obj._.elmo  # noqa: B018


noted: list[weakref.ref] = []


@Language.component("note_vectors")
def note_vectors(doc: Doc) -> Doc:
    noted.append(weakref.ref(doc[0]._.elmo.base))
    return doc


@pytest.mark.parametrize("attrs", [["tensor"], ["_.elmo", "tensor"], ["tensor", "_.elmo"]])
@pytest.mark.parametrize("order", [["elmo"], ["tok2vec", "elmo"], ["elmo", "tok2vec"]])
def test_doc_cleaner(weights: Path, attrs: list[str], order: list[str]) -> None:
    """The vectors go, and their memory: where another's tensor alone is cleaned, when read."""
    nlp = spacy.blank("en")
    for name in order:
        add_tok2vec(nlp) if name == "tok2vec" else add_elmo(nlp, weights)
    nlp.add_pipe("note_vectors")
    nlp.add_pipe("doc_cleaner", config={"attrs": dict.fromkeys(attrs)})
    nlp.initialize()
    doc = nlp(TEXT)
    gc.collect()
    assert (noted[-1]() is None) == (attrs != ["tensor"] or order[-1] == "elmo")
    with pytest.raises(ValueError, match=r"removed|no ELMo vectors"):
        doc[0]._.elmo  # noqa: B018
    gc.collect()
    assert noted[-1]() is None


def test_memory_zone(nlp: Language) -> None:
    with nlp.memory_zone():
        doc = nlp(TEXT)
        arrays = [weakref.ref(doc.tensor)]
        del doc
    assert arrays[0]() is None


@pytest.mark.parametrize("vectors", ["auto", "vocab"])
def test_two_processes(weights: Path, vectors: str) -> None:
    nlp = make_nlp(weights, vectors=vectors)
    add_tok2vec(nlp)
    nlp.initialize()
    expected = [rows(nlp(text)) for text in (TEXT, "One.", "Two words")]
    docs = list(nlp.pipe([TEXT, "One.", "Two words"], n_process=2, batch_size=1))
    for doc, found in zip(docs, expected, strict=True):
        np.testing.assert_array_equal(rows(doc), found)
        assert doc.tensor.shape[1] == 16 and not np.array_equal(doc.tensor, found)


def test_listeners_of_docs_whose_tensor_was_replaced(weights: Path) -> None:
    nlp = make_pipeline(weights, listening())
    start(nlp)
    doc = nlp(TEXT)
    expected = [token.tag_ for token in doc]
    assert [token.tag_ for token in nlp.get_pipe("tagger")(replaced(doc))] == expected


@pytest.mark.gpu
def test_on_a_gpu(weights: Path) -> None:
    """CuPy's arrays, which spaCy merges in place, and a loss that nobody has waited for."""
    expected = rows(make_nlp(weights)(TEXT))
    with use_ops("cupy"):
        nlp = make_pipeline(weights, listening(mix_l2=0.1, initial_weights=[1, 0, 2]))
        examples, _ = start(nlp)
        losses: dict[str, Any] = {}
        nlp.update(examples, sgd=False, losses=losses)
        assert not isinstance(losses["elmo"], float) and float(losses["elmo"]) > 0
        nlp = make_nlp(weights)
        doc = nlp(TEXT)
        assert weakref.ref(doc.tensor)() is doc.tensor
        for way in (lambda doc: doc, *WAYS):
            found = way(nlp(TEXT))
            vectors = np.stack([to_numpy(token._.elmo) for token in found])
            assert np.abs(vectors - expected).max() <= TOLERANCE
        with doc.retokenize() as retokenizer:
            retokenizer.merge(doc[0:2])
        merged = np.stack([to_numpy(token._.elmo) for token in doc])
        assert np.abs(merged - expected[1:]).max() <= TOLERANCE
