"""Components sourced from another pipeline, and listeners that know what they have learned from."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from thinc.api import Adam

from spacy_elmo.bilm.fingerprint import fingerprint
from spacy_elmo.pipeline.source_stamp import ATTRIBUTE

from .helpers import make_nlp, max_difference, write_weights
from .learning import (
    LISTENER,
    TEXT,
    bilm_of,
    listening,
    make_examples,
    mix_of,
    start,
    started,
    step,
    tagger_config,
)

LISTENERS = pytest.mark.parametrize("tok2vec", [listening(), LISTENER], ids=["own mix", "spaCy's"])
WRONG = r"'(tagger|pos)' has learned from the biLM 'tiny' \(\w{8}.*, but 'elmo' has the biLM 'tiny'"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Weights of the same shape."""
    return write_weights(tmp_path / "other", seed=1)


def trained(weights: Path, tok2vec: dict[str, Any] | None = None, **settings: Any) -> Language:
    nlp, *_ = started(weights, tok2vec or listening(), **settings, steps=3)
    return nlp


def scores(nlp: Language, name: str = "tagger", text: str = TEXT) -> np.ndarray:
    """What a tagger computes of a text that its pipeline reads."""
    component = nlp.get_pipe(name)
    return component.model.predict([nlp(text)])[0]


def same(nlp: Language, expected: np.ndarray, name: str = "tagger") -> None:
    assert max_difference([scores(nlp, name)], [expected]) <= 1e-5


# Both pipelines work


def test_a_listener_beside_the_same_weights(weights: Path, tmp_path: Path) -> None:
    """In each pipeline it takes the layers of the elmo component that has read the Doc."""
    source, name = trained(weights), "pos"
    expected = scores(source)
    nlp = make_nlp(weights)
    nlp.add_pipe("tagger", source=source, name=name)
    for each, component in ((nlp, name), (source, "tagger"), (nlp, name)):
        same(each, expected, component)
    doc = source(nlp(TEXT))  # both have read it
    assert max_difference([nlp.get_pipe(name).model.predict([doc])[0]], [expected]) <= 1e-5
    nlp.to_disk(tmp_path / "nlp")
    same(spacy.load(tmp_path / "nlp"), expected, name)
    del source
    same(nlp, expected, name)


def test_of_two_that_have_read_a_doc_the_last_one_counts(weights: Path) -> None:
    """They differ in where sentences end."""
    source, text = trained(weights), "The bank. The river. A bank"
    nlp = make_nlp(weights, segments="doc")
    nlp.add_pipe("tagger", source=source)
    expected = {id(each): scores(each, text=text) for each in (source, nlp)}
    assert max_difference(*([value] for value in expected.values())) > 1e-3
    doc = source.make_doc(text)
    for each in (source, nlp, source):
        found = source.get_pipe("tagger").model.predict([each(doc)])
        np.testing.assert_array_equal(found[0], expected[id(each)])


def test_initialized_where_it_has_its_own_name(weights: Path) -> None:
    """spaCy gives a component that is sourced another name in both pipelines."""
    source = trained(weights)
    spacy.blank("en").add_pipe("elmo", source=source, name="other")
    expected, _ = scores(trained(weights)), start(source)
    examples, optimizer = start(source)
    for _ in range(3):
        step(source, examples, optimizer)
    same(source, expected)


def test_sourced_by_configs(weights: Path, other: Path, tmp_path: Path) -> None:
    """As `spacy train` sets up a pipeline, with components that are frozen or learn on."""
    source = trained(weights)
    expected, examples = scores(source), make_examples(source)
    source.to_disk(tmp_path / "source")
    corpus = tmp_path / "train.spacy"
    DocBin(docs=[example.reference for example in examples]).to_disk(corpus)
    reader = {"@readers": "spacy.Corpus.v1", "path": str(corpus)}
    sourced = {"source": str(tmp_path / "source")}

    def own(path: Path) -> dict[str, Any]:
        return make_nlp(path).config["components"]["elmo"]

    def set_up(elmo: dict[str, Any], frozen: list[str]) -> Language:
        second = {"factory": "tagger", **tagger_config(listening())}
        blocks = {
            "nlp": {"lang": "en", "pipeline": ["elmo", "tagger", "second"]},
            "components": {"elmo": elmo, "tagger": sourced, "second": second},
            "corpora": {"train": reader, "dev": reader},
            "training": {"frozen_components": frozen},
        }
        return init_nlp(spacy.blank("en").config.merge(blocks))

    for elmo in (sourced, own(weights)):
        for frozen in ([], ["tagger"], ["elmo", "tagger"]):
            nlp = set_up(elmo, frozen)
            same(nlp, expected)
            annotating = [name for name in frozen if name == "elmo"]
            losses = nlp.update(examples, sgd=Adam(0.01), exclude=frozen, annotates=annotating)
            assert "second" in losses
            assert ("tagger" in losses) == ("tagger" not in frozen)
    for frozen in ([], ["tagger"]):
        with pytest.raises(ValueError, match=WRONG):
            set_up(own(other), frozen)
    nlp = set_up(own(other), ["elmo", "tagger"])  # nothing is initialized that could see it
    with pytest.raises(ValueError, match=WRONG):
        nlp(TEXT)


def test_weights_are_not_loaded_to_source(weights: Path, tmp_path: Path) -> None:
    trained(weights).to_disk(tmp_path / "source")
    nlp = make_nlp(weights)
    nlp.add_pipe("tagger", source=spacy.load(tmp_path / "source"))
    assert not nlp.get_pipe("elmo").bilm.is_loaded


# Another biLM, or none


def saved(nlp: Language, path: Path) -> Language:
    nlp.to_disk(path / "source")
    return spacy.load(path / "source")


def copied(nlp: Language, path: Path) -> Language:
    nlp = pickle.loads(pickle.dumps(copy.deepcopy(nlp)))
    return spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())


@LISTENERS
@pytest.mark.parametrize("way", [lambda nlp, path: nlp, saved, copied])
def test_another_bilm(
    weights: Path, other: Path, tmp_path: Path, way: Callable[..., Language], tok2vec: Any
) -> None:
    source = trained(weights, tok2vec)
    expected = scores(source)
    source = way(source, tmp_path)
    nlp = make_nlp(other)
    nlp.add_pipe("tagger", source=source)
    prints = [fingerprint(bilm_of(each.get_pipe("elmo").model))[:8] for each in (source, nlp)]
    assert prints[0] != prints[1]
    said = rf"{WRONG}.*Source 'elmo' .* of 'tagger' too.*replace_listeners.*train it again"
    for use in (
        lambda: nlp(TEXT),
        lambda: list(nlp.pipe([TEXT])),
        lambda: nlp.update(make_examples(nlp), sgd=Adam(0.01)),
    ):
        with pytest.raises(ValueError, match=said) as caught:
            use()
        assert all(each in str(caught.value) for each in prints)
    same(source, expected)
    with pytest.raises(ValueError, match=WRONG):
        nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    source.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    alone = make_nlp(other)
    alone.add_pipe("tagger", source=source)
    same(alone, expected)


@pytest.mark.parametrize(
    ("tok2vec", "frozen"), [(listening(), True), (LISTENER, True), (listening(), False)]
)
def test_what_learns_with_one_bilm_does_not_fit_the_other_any_more(
    weights: Path, other: Path, tok2vec: dict[str, Any], frozen: bool
) -> None:
    """Trained again with another biLM, or fine-tuned with one that was the same."""
    source = trained(weights, tok2vec)
    nlp = make_nlp(other if frozen else weights, frozen=frozen)
    nlp.add_pipe("tagger", source=source)
    examples = make_examples(nlp)
    if frozen:
        nlp.initialize(lambda: examples)
    for _ in range(3):
        step(nlp, examples, Adam(0.01))
    nlp(TEXT)
    with pytest.raises(ValueError, match=WRONG):
        source(TEXT)


def test_the_mix_of_spacys_listeners(weights: Path) -> None:
    """They learn with the elmo component's, which is in ``doc.tensor``."""
    source = trained(weights, LISTENER)
    expected = scores(source)
    nlp = make_nlp(weights)
    nlp.add_pipe("tagger", source=source)
    with pytest.raises(ValueError, match=r"biLM 'tiny' \((\w{8}), mix (\w{8})\), but .*\(\1, mix"):
        nlp(TEXT)
    same(source, expected)
    for name in ("w", "gamma"):
        learned = mix_of(source.get_pipe("elmo").model).get_param(name)
        mix_of(nlp.get_pipe("elmo").model).set_param(name, learned.copy())
    same(nlp, expected)


def test_other_weights_are_loaded_into_a_component(weights: Path, other: Path) -> None:
    """A copy of the listener's model knows what it has learned from, too."""
    nlp = trained(weights)
    expected, tagger = scores(nlp), nlp.get_pipe("tagger")
    tagger.model = tagger.model.copy()
    same(nlp, expected)
    nlp.get_pipe("elmo").from_bytes(make_nlp(other).get_pipe("elmo").to_bytes())
    with pytest.raises(ValueError, match=WRONG):
        nlp(TEXT)


def test_damaged(weights: Path) -> None:
    nlp = trained(weights)
    listener = nlp.get_pipe("tagger").model.get_ref("tok2vec")
    listener.attrs[ATTRIBUTE] = {"bilm": 3, "mix": 4, "name": None}
    with pytest.raises(ValueError, match="'tagger' has learned from the biLM"):
        nlp(TEXT)


# What learns with a biLM


def test_a_fine_tuned_pipeline_is_saved(weights: Path, tmp_path: Path) -> None:
    """Its listeners fit the weights that are saved with them, averages or not."""
    nlp, examples, _ = started(weights, listening(), frozen=False)
    optimizer = Adam(0.01, use_averages=True)
    for _ in range(3):
        step(nlp, examples, optimizer)
    nlp.to_disk(tmp_path / "last")
    with nlp.use_params(optimizer.averages):
        nlp(TEXT)
        nlp.to_disk(tmp_path / "best")
    for each in (nlp, spacy.load(tmp_path / "last"), spacy.load(tmp_path / "best")):
        each(TEXT)
        early = make_nlp(weights)
        early.add_pipe("tagger", source=each)
        with pytest.raises(ValueError, match=WRONG):
            early(TEXT)


@LISTENERS
def test_one_that_is_silent_while_another_fine_tunes(
    weights: Path, tmp_path: Path, tok2vec: dict[str, Any]
) -> None:
    """After loading, and for many steps: spaCy warns of that, and it is no other biLM."""
    nlp = make_nlp(weights, frozen=False)
    for name in ("tagger", "second"):
        nlp.add_pipe("tagger", name=name, config=tagger_config(tok2vec))
    examples, optimizer = start(nlp)
    step(nlp, examples, optimizer)
    nlp.to_disk(tmp_path / "nlp")
    loaded = spacy.load(tmp_path / "nlp")
    for _ in range(2):
        loaded.update(examples, sgd=False, exclude=["second"])
        for name in ("elmo", "tagger"):
            loaded.get_pipe(name).finish_update(optimizer)
    loaded(TEXT)
