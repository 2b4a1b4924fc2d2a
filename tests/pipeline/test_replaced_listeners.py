"""What becomes of listeners that spaCy's ``replace_listeners`` replaces, and of their configs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import spacy
from thinc.api import Adam

from .helpers import TOLERANCE, add_elmo, make_nlp, max_difference
from .learning import (
    EMBED,
    ENCODE,
    LISTENER,
    TEXT,
    listening,
    make_examples,
    start,
    started,
    step,
    tagger_config,
)

PATHS = ["model.tok2vec.elmo", "model.tok2vec.output_elmo"]


def two(elmo: dict[str, Any], output_elmo: dict[str, Any]) -> dict[str, Any]:
    return {
        "@architectures": "spacy-elmo.Tok2Vec.v1",
        "elmo": elmo,
        "embed": EMBED,
        "encode": ENCODE,
        "output_elmo": output_elmo,
    }


@pytest.mark.parametrize(
    "listeners",
    [
        (listening(layer_norm=True, gamma=3.0), listening()),
        (LISTENER, listening(layer_norm=True, gamma=3.0)),
        (listening(layer_norm=True, gamma=3.0), LISTENER),
    ],
)
def test_each_is_saved_with_the_settings_of_its_mix(
    weights: Path, tmp_path: Path, listeners: tuple[dict, dict]
) -> None:
    """Those of layer_norm change what is computed."""
    nlp, *_ = started(weights, two(*listeners), steps=1)
    expected = nlp.get_pipe("tagger").model.predict([nlp(TEXT)])
    nlp.replace_listeners("elmo", "tagger", PATHS)
    assert max_difference(nlp.get_pipe("tagger").model.predict([nlp(TEXT)]), expected) <= TOLERANCE
    nlp.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    found = loaded.get_pipe("tagger").model.predict([loaded(TEXT)])
    assert max_difference(found, expected) <= TOLERANCE


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
    examples, optimizer = start(nlp)
    step(nlp, examples, optimizer)
    expected = nlp.get_pipe("tagger").model.predict([nlp(TEXT)])
    for name in order:
        nlp.replace_listeners(name, "tagger", [PATHS["ab".index(name)]])
    nlp.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    found = loaded.get_pipe("tagger").model.predict([loaded(TEXT)])
    assert max_difference(found, expected) <= TOLERANCE


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
    expected = nlp.get_pipe("tagger").model.predict([nlp(TEXT)])
    nlp.replace_listeners("other", "tagger", ["model.tok2vec"])
    nlp.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    found = loaded.get_pipe("tagger").model.predict([loaded(TEXT)])
    assert max_difference(found, expected) <= TOLERANCE


def test_in_a_config_of_a_training(weights: Path, tmp_path: Path) -> None:
    """``replace_listeners`` beside ``source``, as `spacy train` reads it."""
    nlp, *_ = started(weights, two(listening(layer_norm=True), listening(gamma=2.0)))
    nlp.to_disk(tmp_path / "saved")
    expected = nlp.get_pipe("tagger").model.predict([nlp(TEXT)])
    source = {"source": str(tmp_path / "saved"), "replace_listeners": PATHS}
    config = {"nlp": {"lang": "en", "pipeline": ["tagger"]}, "components": {"tagger": source}}
    sourced = spacy.blank("en").from_config(config)
    found = sourced.get_pipe("tagger").model.predict([sourced.make_doc(TEXT)])
    assert max_difference(found, expected) <= TOLERANCE
    step(sourced, make_examples(sourced), Adam(0.01))
