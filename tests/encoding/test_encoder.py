"""Vectors of rows are those of the pipeline."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import spacy
import torch

from spacy_elmo import Encoder
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.weights.native import save_bilm

from ..pipeline.helpers import (
    CARD,
    CONFIG,
    N_LAYERS,
    TEXTS,
    TOLERANCE,
    WIDTH,
    make_nlp,
    max_difference,
    write_statistics,
)


def test_vectors_of_the_pipeline(weights: str) -> None:
    docs = list(make_nlp(weights, store=["layers"]).pipe(TEXTS))
    assert any(len(doc) == 0 for doc in docs)
    mixed = Encoder(weights)(TEXTS)
    assert max_difference(mixed, [doc.tensor for doc in docs]) <= TOLERANCE
    layers = [np.moveaxis(doc._.elmo_layers, 0, 1) for doc in docs]
    every = Encoder(weights, layers="all")(TEXTS)
    assert max_difference(every, layers) <= TOLERANCE
    assert every[0].shape == (len(docs[0]), N_LAYERS, WIDTH)
    top = Encoder(weights, layers="top")(TEXTS)
    assert max_difference(top, [array[:, -1] for array in layers]) <= TOLERANCE


def test_means_of_sentences_and_documents(weights: str) -> None:
    nlp = make_nlp(weights)
    nlp.add_pipe("sentencizer", first=True)
    docs = list(nlp.pipe(TEXTS))
    means = Encoder(weights, level="documents")(TEXTS)
    assert max_difference([means], [np.stack([d._.elmo for d in docs])]) <= TOLERANCE
    block = Encoder(weights, level="sentences").encode(TEXTS)
    sents = [[s for s in doc.sents if s.text.strip()] for doc in docs]
    assert block.tokens == [[s.text.strip() for s in of_doc] for of_doc in sents]
    means = np.stack([s._.elmo for of_doc in sents for s in of_doc])
    assert max_difference([block.vectors], [means]) <= TOLERANCE
    every = Encoder(weights, level="sentences", layers="all")(TEXTS)
    assert every[1].shape == (0, N_LAYERS, WIDTH)


def test_the_checksum_changes_with_what_is_computed(tmp_path: Path) -> None:
    """Also with what is no parameter: a warm state, a table of word vectors, the statistics."""
    path = tmp_path / "weights"
    torch.manual_seed(0)
    model = BiLM(replace(CONFIG, initial_state="warm"))
    found = []
    for state in (model.initial_state("zero"), model.initial_state("warm")):
        model.warm_h, model.warm_c = state
        path.mkdir(exist_ok=True)
        save_bilm(model, path, CARD)
        found += [Encoder(str(path)).checksum() for _ in range(2)]
    write_statistics(path, [["a", "bank", "."]])
    found += [Encoder(str(path)).checksum() for _ in range(2)]
    for changes in ({"initial_state": "zero"}, {"max_words": 9}):
        nlp = make_nlp(path, **changes)
        nlp.to_disk(tmp_path / "nlp")
        found += [Encoder(pipeline=str(tmp_path / "nlp")).checksum() for _ in range(2)]
    assert found[::2] == found[1::2] and len(set(found)) == 5


def test_a_pipeline(weights: str, tmp_path: Path) -> None:
    """The mix of its component, and the sentences of the one before; none behind it runs."""
    nlp = make_nlp(weights, initial_weights=[0.5, -1, 2], gamma=1.5)
    nlp.add_pipe("attribute_ruler")
    nlp.add_pipe("sentencizer", first=True, config={"punct_chars": [";"]})
    nlp.to_disk(tmp_path)
    texts = ["A bank. And b; the bank c.", "d"]
    encoder = Encoder(pipeline=str(tmp_path))
    assert max_difference(encoder(texts), [doc.tensor for doc in nlp.pipe(texts)]) <= TOLERANCE
    assert encoder.nlp.pipe_names == ["sentencizer", "elmo"]
    sentences = Encoder(pipeline=str(tmp_path), level="sentences").encode(texts[:1]).tokens
    assert sentences == [["A bank. And b;", "the bank c."]]
    nlp.remove_pipe("elmo")
    nlp.to_disk(tmp_path)
    with pytest.raises(ValueError, match=r"no elmo component\. It has: sentencizer, "):
        Encoder(pipeline=str(tmp_path))(texts)


def test_too_large_for_half_precision(weights: str, tmp_path: Path) -> None:
    make_nlp(weights, gamma=1e6).to_disk(tmp_path)
    assert np.isfinite(Encoder(pipeline=str(tmp_path))(["A bank"])[0]).all()
    with pytest.raises(ValueError, match="too large for dtype = 'float16': use float32"):
        Encoder(pipeline=str(tmp_path), dtype="float16")(["A bank"])


NLP = spacy.blank("en")


@pytest.mark.parametrize(
    "rows, message",
    [
        ("a b", r"Give a list of texts, .* found the str 'a b'"),
        (None, "found a NoneType"),
        ({"text": ["a b"], "id": [1]}, r"column of texts, .* found a dict"),
        (NLP("a b"), r"or \[doc\.text\]; found the Doc 'a b'"),
        (["a b", NLP("a b")[:1]], r"Row 1: .* its text, doc\.text, or the words"),
        ([[*NLP("a b")]], r"Row 0: .* found \[a, b\]: give the text of each, such as token\.text"),
        (np.array([["a", "b"], ["c", "d"]]), r"column of texts; found a ndarray .* \(2, 2\)"),
        (["a b", {"text": "c"}], "Row 1: expected a text, found {'text': 'c'}"),
        ([["a b."], ["c d."]], r"Row 0: .* found \['a b\.'\]: give the text, not a list of it"),
        ([NamedTuple("Pair", [("id", str), ("text", str)])("1", "c")], "found Pair"),
        ([["a", ""]], r"words that are not empty, found \['a', "),
    ],
)  # fmt: skip
@pytest.mark.parametrize("level", ["tokens", "documents"])
def test_rows_that_are_no_texts(weights: str, level: str, rows: Any, message: str) -> None:
    encoder = Encoder(weights, level=level)
    for read in (encoder, encoder.encode):
        with pytest.raises(ValueError, match=message):
            read(rows)


def test_rows_of_other_libraries(weights: str) -> None:
    encoder = Encoder(weights)
    [expected] = encoder(["a b"])
    for rows in (
        ("a b",), np.array(["a b"]), np.array(["a b"], dtype=object), [np.str_("a b")],
        [np.array(["a", "b"])], [("a", "b")], iter(["a b"]), (text for text in ["a b"]),
        {"x": "a b"}.values(), [np.array("a b")],
    ):  # fmt: skip
        assert np.array_equal(encoder(rows)[0], expected)


def test_columns_of_pandas_and_arrow(weights: str) -> None:
    """A null is an empty text, an index is no order."""
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    encoder = Encoder(weights, level="documents")
    texts = ["a b", None, "The bank."]
    expected = encoder(["a b", "", "The bank."])
    objects = pandas.Series(texts, index=["columns", "shape", "column_names"], dtype=object)
    frame = pandas.DataFrame({"text": texts, "label": [1, 2, 3]}, index=[2, 1, 0])
    table = arrow.table({"text": texts, "label": [1, 2, 3]})
    for rows in (
        objects, objects.fillna(np.nan), objects.astype("string"), objects.astype("category"),
        pandas.Index(objects), pandas.Series(texts, dtype="string[pyarrow]"),
        pandas.Series([["a", "b"], [], ["The", "bank", "."]]), frame["text"],
        frame["text"].tolist(), table["text"], table["text"].combine_chunks(),
        arrow.array([["a", "b"], None, ["The", "bank", "."]]), ["a b", pandas.NA, "The bank."],
        ["a b", float("nan"), "The bank."], np.array(["a b", np.nan, "The bank."], dtype=object),
        np.array(["a b", np.float32("nan"), "The bank."], dtype=object),
    ):  # fmt: skip
        assert np.array_equal(encoder(rows), expected)
    for whole in (frame, frame[["text"]], frame[["text"]].to_numpy(), table):
        with pytest.raises(ValueError, match="Give one column of texts"):
            encoder(whole)


def test_threads_share_an_encoder(weights: str) -> None:
    """Also of a pipeline with components before it, and for long words."""
    encoder = Encoder(weights)
    texts = [f"word{i} of {'long' * 40}{i}. More" for i in range(24)]
    expected = [Encoder(weights)([text])[0] for text in texts]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: encoder([text])[0], texts))
    sys.setswitchinterval(before)
    assert max_difference(found, expected) <= TOLERANCE
    assert encoder.nlp.pipe_names == ["elmo"]


def test_documents_are_the_rows_of_one_array(weights: str) -> None:
    encoder = Encoder(weights, level="documents")
    null, empty, text = found = encoder([None, "", "a b"])
    assert found.shape == (3, WIDTH) and encoder([]).shape == (0, WIDTH)
    assert np.array_equal(null, empty) and not null.any() and text.any()


def test_words_are_one_sentence(weights: str) -> None:
    encoder = Encoder(weights)
    words = ["A", "b", ".", "C.d", "e"]
    block = encoder.encode([words])
    assert block.tokens == [words]
    whole = make_nlp(weights, segments="doc")
    doc = spacy.tokens.Doc(whole.vocab, words=words)
    assert max_difference([block.vectors], [whole(doc).tensor]) <= TOLERANCE
    [split] = encoder([spacy.tokens.Doc(whole.vocab, words=words).text])
    assert np.abs(split - block.vectors).max() > 0.001


def test_pickled_as_its_settings(weights: str) -> None:
    encoder = Encoder(weights, layers="top", dtype="float16")
    vectors = encoder(["A bank"])
    data = pickle.dumps(encoder)
    assert len(data) < 1000
    again = pickle.loads(data)
    assert again == encoder and {again, encoder} == {encoder}
    assert np.array_equal(again(["A bank"])[0], vectors[0])
    assert vectors[0].dtype == np.float16
