"""`spacy_elmo.mixes`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import spacy

import spacy_elmo

from .helpers import N_LAYERS, make_nlp
from .learning import EMBED, LISTENER, listening, make_examples, make_inline, start, started, two

OWN_MIX = listening()


def test_names_and_numbers(weights: Path, tmp_path: Path) -> None:
    listeners = listening(initial_weights=[9.0, 0.0, 0.0]), listening(layers=1, gamma=0.5)
    nlp, *_ = started(weights, two(*listeners))
    nlp.to_disk(tmp_path / "nlp")
    for pipeline in (nlp, spacy.load(tmp_path / "nlp")):
        found = {(mix.component, mix.listener): mix for mix in spacy_elmo.mixes(pipeline)}
        own = {("elmo", "doc.tensor")}  # which nobody has needed so far
        assert set(found) - own == {("tagger", "elmo"), ("tagger", "output_elmo")}
        at_input, at_output = found["tagger", "elmo"], found["tagger", "output_elmo"]
        s = np.exp([9.0, 0.0, 0.0])
        assert np.allclose(at_input.weights, s / s.sum(), atol=1e-6)
        assert at_output.weights == (0, 1, 0)
        assert (at_input.gamma, at_output.gamma) == (1.0, 0.5)
        assert not any(mix.is_trained for mix in found.values())


@pytest.mark.parametrize("name", ["parser", "tagger", "spancat"])
def test_names_of_all_kinds_of_components(weights: Path, name: str) -> None:
    """Those that the config shows: parsers, too, hide the listener in a larger part."""
    parts = (OWN_MIX, {"@architectures": "spacy-elmo.Tok2Vec.v1", "elmo": OWN_MIX, "embed": EMBED})
    for tok2vec, expected in zip(parts, ("tok2vec", "elmo"), strict=True):
        nlp = make_nlp(weights)
        config = nlp.get_factory_meta(name).default_config["model"] | {"tok2vec": tok2vec}
        component = nlp.add_pipe(name, config={"model": config})
        component.add_label("A")
        component.add_label("B")
        nlp.initialize(lambda nlp=nlp: make_examples(nlp))
        found = [mix.listener for mix in spacy_elmo.mixes(nlp) if mix.component == name]
        assert found == [expected]


def test_the_shared_mix_and_one_without_a_component(weights: Path) -> None:
    nlp, *_ = started(weights, LISTENER, steps=1)
    [shared] = spacy_elmo.mixes(nlp)
    assert (shared.component, shared.listener) == ("elmo", "doc.tensor")
    assert shared.gamma != 1.0 and shared.is_trained
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec"])
    assert [mix.listener for mix in spacy_elmo.mixes(nlp)] == ["doc.tensor", "tok2vec"]
    inline = make_inline(weights)
    start(inline)
    [mix] = spacy_elmo.mixes(inline)
    assert mix.component == "tagger"
    assert len(mix.weights) == N_LAYERS


def test_a_pipeline_without_any() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    assert spacy_elmo.mixes(nlp) == []
    nlp.add_pipe("elmo")
    assert spacy_elmo.mixes(nlp) == []  # it does not know its biLM yet
