"""Layers of a frozen biLM, held while something learns from them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import spacy
import torch
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.pipeline.layer_cache import BYTES_PER_ENTRY, LayerCache

from .helpers import TOLERANCE, make_nlp, max_difference
from .learning import LISTENER, bilm_of, make_examples, make_pipeline, start, started, step

OWN_MIX = {"@architectures": "spacy-elmo.ElmoListener.v1", "dropout": 0.0}
words = st.lists(st.text(max_size=5), min_size=1, max_size=6)


def layers_of(n_words: int, value: float = 1.0) -> torch.Tensor:
    return torch.full((3, n_words, 8), value)


def size_of(n_words: int) -> int:
    return layers_of(n_words).nbytes + BYTES_PER_ENTRY


def cache_of(nlp: Language) -> LayerCache:
    return nlp.get_pipe("elmo").bilm.cache


def sentences_read(nlp: Language) -> list[Any]:
    """Every sentence that the biLM reads from now on."""
    model, sentences = nlp.get_pipe("elmo").bilm.model, list[Any]()
    read = model.read
    model.read = lambda given, *settings: sentences.extend(given) or read(given, *settings)
    return sentences


# The cache alone


def look_up(cache: LayerCache, sentences: Sequence[Sequence[str]], value: float = 1.0) -> Any:
    """The layers of sentences, and which of them were read now."""
    read: list[Any] = []

    def note(missing: Sequence[Sequence[str]]) -> list[torch.Tensor]:
        read.extend(missing)
        return [layers_of(len(words), value) for words in missing]

    return cache.lookup(sentences, note, "version"), read


@given(st.lists(words, min_size=1, max_size=8))
@hypothesis.example([["a b"], ["a", "b"]])
def test_what_was_read_is_found_by_its_words_alone(sentences: list[list[str]]) -> None:
    cache = LayerCache(1)
    cache.begin()
    distinct = list(map(list, dict.fromkeys(map(tuple, sentences))))
    for number, sentence in enumerate(distinct):
        assert look_up(cache, [sentence], number)[1] == [sentence]
    found, read = look_up(cache, sentences, 99)
    assert read == []
    for sentence, layers in zip(sentences, found, strict=True):
        assert torch.equal(layers, layers_of(len(sentence), distinct.index(sentence)))


def test_bounded_in_bytes_and_full_it_takes_nothing_more() -> None:
    cache = LayerCache(1)
    for i in range(1000):
        cache.begin()
        look_up(cache, [[str(i)] * 50])
    for _ in range(2):  # what was read first is still there after an epoch
        cache.begin()
        _, read = look_up(cache, [[str(i)] * 50 for i in range(1000)])
        n_held = 2**20 // size_of(50)
        assert [words[0] for words in read] == [str(i) for i in range(n_held, 1000)]


def test_an_evaluation_larger_than_it_leaves_it_as_it_is() -> None:
    """Predictions alone, which read ten times its size, end it."""
    cache = LayerCache(1)
    cache.begin()
    look_up(cache, [["trained"] * 50])
    for i in range(5 * 2**20 // size_of(50)):
        look_up(cache, [[str(i)] * 50])
    assert not look_up(cache, [["trained"] * 50])[1]
    for i in range(7 * 2**20 // size_of(50)):
        if cache.is_on:
            look_up(cache, [[str(i)] * 50])
    assert not cache.is_on
    cache.begin()
    assert look_up(cache, [["trained"] * 50])[1]


# In a training


@pytest.mark.parametrize("listener", [LISTENER, OWN_MIX], ids=["shared", "own"])
def test_each_sentence_is_read_once(weights: Path, listener: dict) -> None:
    nlp, examples, optimizer = started(weights, listener)
    read = sentences_read(nlp)
    step(nlp, examples, optimizer)
    first = len(read)
    assert first > 0
    step(nlp, examples, optimizer)
    for example in examples:
        nlp(Doc(nlp.vocab, words=[t.text for t in example.reference]))
    nlp.evaluate(make_examples(nlp))
    assert len(read) == first
    assert cache_of(nlp).hits > 0


@pytest.mark.parametrize(
    ("settings", "steps"), [({"cache_mb": 0}, 2), ({"frozen": False}, 2), ({}, 0)]
)
def test_not_without_the_setting_nor_for_a_biLM_that_learns_nor_in_prediction_alone(
    weights: Path, settings: dict, steps: int
) -> None:
    nlp, *_ = started(weights, OWN_MIX, **settings, steps=steps)
    read = sentences_read(nlp)
    for n in (1, 2):
        nlp("the bank sat.")
        assert len(read) == n
    assert not cache_of(nlp).is_on


@pytest.mark.parametrize("frozen", [True, False])
def test_frozen_and_annotating(weights: Path, frozen: bool) -> None:
    """Among the frozen components, a biLM that has learned does not learn either."""
    nlp, examples, optimizer = started(weights, OWN_MIX, frozen=frozen)
    read = sentences_read(nlp)
    for _ in range(3):  # the first time the listener turns the cache on
        read.clear()
        nlp.update(examples, sgd=optimizer, exclude=["elmo"], annotates=["elmo"])
    assert read == []


def test_the_same_training_as_without(weights: Path) -> None:
    """To the bit, where the same batches are read; else rounding depends on what is in a batch, and
    on the place there: what occurs twice is read twice, but is in the cache once."""
    with_cache = make_pipeline(weights, OWN_MIX)
    without = make_pipeline(weights, OWN_MIX, cache_mb=0)
    for nlp in (with_cache, without):
        examples, optimizer = start(nlp)
        distinct = [e for e in examples if not {".", "!"} & {t.text for t in e.reference}]
        assert len({e.text for e in distinct}) == len(distinct) > 1
        for _ in range(5):
            step(nlp, distinct, optimizer)
    assert cache_of(with_cache).hits > 0
    taggers = [nlp.get_pipe("tagger").model.to_bytes() for nlp in (with_cache, without)]
    assert taggers[0] == taggers[1]


def test_under_autocast_and_outside(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In turn, while the layers of both are held: each as by a biLM that has read nothing yet. Only
    PyTorch's operators round."""
    monkeypatch.setattr("spacy_elmo.bilm.model.load_kernel", lambda: None)
    text, autocast = "the bank sat.", torch.autocast("cpu", torch.bfloat16)
    nlp = make_pipeline(weights, OWN_MIX)
    with autocast:
        examples, optimizer = start(nlp)
        step(nlp, examples, optimizer)
        rounded = make_nlp(weights)(text).tensor
    step(nlp, examples, optimizer)
    exact = make_nlp(weights)(text).tensor
    assert not np.array_equal(rounded, exact)
    for _ in range(2):
        with autocast:
            step(nlp, examples, optimizer)
            assert max_difference(nlp(text).tensor, rounded) <= TOLERANCE
        assert max_difference(nlp(text).tensor, exact) <= TOLERANCE
    assert cache_of(nlp).is_on and cache_of(nlp).hits > 0


def test_what_the_layer_returns_is_not_the_caches_own(weights: Path) -> None:
    nlp = make_nlp(weights)
    elmo = nlp.get_pipe("elmo")
    layer, doc = elmo.model.get_ref("bilm"), nlp.make_doc("A bank.")
    [expected] = layer.predict([doc])
    elmo.bilm.cache.begin()
    for _ in range(3):
        [layers] = layer.predict([doc])
        assert np.array_equal(layers, expected)
        layers[:] = 0
    assert elmo.bilm.cache.hits == 2


def test_forgotten_when_weights_are_written_to(weights: Path) -> None:
    nlp, *_ = started(weights, OWN_MIX, steps=1)
    nlp("the bank sat.")
    with torch.no_grad():
        for parameter in bilm_of(nlp.get_pipe("elmo").model).lstm.parameters():
            parameter.mul_(0.5)
    cached = nlp("the bank sat.").tensor
    cache_of(nlp).clear()
    assert max_difference(nlp("the bank sat.").tensor, cached) <= TOLERANCE


def test_it_travels_nowhere(weights: Path, tmp_path: Path) -> None:
    nlp, examples, optimizer = started(weights, OWN_MIX)
    before = len(pickle.dumps(nlp)), len(nlp.to_bytes())
    step(nlp, examples, optimizer)
    assert cache_of(nlp).is_on
    assert len(pickle.dumps(nlp)) <= before[0] + 2000
    assert len(nlp.to_bytes()) <= before[1] + 2000
    assert not cache_of(pickle.loads(pickle.dumps(nlp))).is_on
    nlp.to_disk(tmp_path / "nlp")
    assert not cache_of(spacy.load(tmp_path / "nlp")).is_on
