"""What becomes of listeners that spaCy's ``replace_listeners`` replaces, and of their configs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from thinc.api import Adam

from .helpers import TOLERANCE, add_elmo, make_nlp, max_difference
from .learning import (
    LISTENER,
    TEXT,
    WORDS,
    listening,
    make_examples,
    start,
    started,
    step,
    tagger_config,
    two,
)

PATHS = ["model.tok2vec.elmo", "model.tok2vec.output_elmo"]


def scores(nlp: Language) -> list[np.ndarray]:
    return nlp.get_pipe("tagger").model.predict([nlp(TEXT)])


def stays_the_same(nlp: Language, replaced: list[tuple[str, list[str]]], path: Path) -> None:
    """The tagger, with its listeners to these components replaced; saved, too."""
    expected = scores(nlp)
    for upstream, paths in replaced:
        nlp.replace_listeners(upstream, "tagger", paths)
    nlp.to_disk(path / "saved")
    for each in (nlp, spacy.load(path / "saved")):
        assert max_difference(scores(each), expected) <= TOLERANCE


@pytest.mark.parametrize(
    "listeners",
    [
        (listening(layer_norm=True, gamma=3.0), listening()),
        (listening(layers=1, gamma=0.5), listening(layers="top")),
        (LISTENER, listening(layer_norm=True, gamma=3.0)),
        (listening(layer_norm=True, gamma=3.0), LISTENER),
    ],
)
def test_each_is_saved_with_the_settings_of_its_mix(
    weights: Path, tmp_path: Path, listeners: tuple[dict, dict]
) -> None:
    """Those of layer_norm and layers change what is computed."""
    nlp, *_ = started(weights, two(*listeners), steps=1)
    stays_the_same(nlp, [("elmo", PATHS)], tmp_path)


def test_paths_in_another_order(weights: Path) -> None:
    nlp, *_ = started(weights, two(listening(), listening(gamma=2.0)))
    with pytest.raises(ValueError, match="in the order of the component's config"):
        nlp.replace_listeners("elmo", "tagger", PATHS[::-1])


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_listeners_of_two_components(
    weights: Path, own_weights: Path, tmp_path: Path, order: tuple[str, str]
) -> None:
    nlp = make_nlp(weights, name="a")
    add_elmo(nlp, own_weights, "b")
    tok2vec = two(listening(upstream="a", layer_norm=True), listening(upstream="b", gamma=2.0))
    nlp.add_pipe("tagger", config=tagger_config(tok2vec))
    step(nlp, *start(nlp))
    stays_the_same(nlp, [(name, [PATHS["ab".index(name)]]) for name in order], tmp_path)


@pytest.mark.parametrize("sourced", [True, False])
def test_after_another_name(weights: Path, tmp_path: Path, sourced: bool) -> None:
    nlp = make_nlp(weights)
    if sourced:
        source, nlp = nlp, spacy.blank("en")
        nlp.add_pipe("elmo", source=source, name="other")
    else:
        nlp.rename_pipe("elmo", "other")
    listener = listening(upstream="other", layer_norm=True, gamma=3.0)
    nlp.add_pipe("tagger", config=tagger_config(listener))
    start(nlp)
    stays_the_same(nlp, [("other", ["model.tok2vec"])], tmp_path)


def test_in_a_config_of_a_training(weights: Path, tmp_path: Path) -> None:
    """``replace_listeners`` beside ``source``, as `spacy train` reads it."""
    nlp, *_ = started(weights, two(listening(layer_norm=True), listening(gamma=2.0)))
    nlp.to_disk(tmp_path / "saved")
    source = {"source": str(tmp_path / "saved"), "replace_listeners": PATHS}
    config = {"nlp": {"lang": "en", "pipeline": ["tagger"]}, "components": {"tagger": source}}
    sourced = spacy.blank("en").from_config(config)
    found = sourced.get_pipe("tagger").model.predict([sourced.make_doc(TEXT)])
    assert max_difference(found, scores(nlp)) <= TOLERANCE
    step(sourced, make_examples(sourced), Adam(0.01))


@pytest.mark.parametrize("path", PATHS)
def test_trained_anew(weights: Path, path: str) -> None:
    """One that is alone, before the encoder or behind it."""
    tok2vec = two(listening(), listening())
    [other] = (name.rpartition(".")[2] for name in PATHS if name != path)
    nlp, *_ = started(weights, tok2vec | {other: None})
    nlp.replace_listeners("elmo", "tagger", [path])
    new = spacy.blank("en").from_config(nlp.config)
    start(new)
    assert new("The bank")[1].tag_ in WORDS.values()
