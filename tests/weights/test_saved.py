"""The biLM of a saved pipeline, installed or not, as weights."""

import sys
from types import ModuleType

import numpy as np
import pytest
import spacy

from spacy_elmo.weights.find import find_weights, load_bilm

from ..bilm.helpers import same_weights
from ..cli.helpers import succeed
from ..pipeline.helpers import CARD, make_nlp, write_language_model, write_statistics
from .helpers import read


@pytest.fixture
def weights(tmp_path):
    path = write_language_model(tmp_path / "weights", ["a", "bank"])
    write_statistics(path, [["a", "bank"], ["the", "bank"]])
    return path


@pytest.fixture
def pipeline(weights, tmp_path):
    """A saved pipeline in a package, as `spacy package` makes it."""
    folder = tmp_path / "site" / "en_tiny"
    saved = folder / "en_tiny-1.0"
    folder.mkdir(parents=True)
    nlp = make_nlp(weights)
    nlp.add_pipe("sentencizer")
    nlp.to_disk(saved)
    (folder / "__init__.py").write_text("raise RuntimeError('need not be imported')")
    return saved


def test_a_name_of_an_installed_pipeline(weights, pipeline, tmp_path, monkeypatch):
    """Its biLM can be used with other settings, and needs nothing else."""
    expected, statistics = load_bilm(weights), find_weights(weights).statistics()
    own = make_nlp(weights, initial_weights=[0.0, 1.0, 2.0])("A bank of words.").tensor
    for file in weights.iterdir():
        file.unlink()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    found = find_weights("en_tiny")
    assert found.config() == expected.config
    assert same_weights(found.load(), expected)
    assert found.card() == CARD
    assert found.statistics().frequencies == statistics.frequencies
    assert not found.has_head() and found.load().warm_h is None
    assert [file.is_file() for file in found.files()] == [True]
    nlp = make_nlp("en_tiny", initial_weights=[0.0, 1.0, 2.0])
    np.testing.assert_array_equal(nlp("A bank of words.").tensor, own)
    with pytest.raises(ValueError, match="without a language model's head"):
        found.head()


def test_the_directory_of_a_pipeline(weights, pipeline, tmp_path):
    assert same_weights(load_bilm(pipeline), load_bilm(weights))
    succeed("convert", pipeline, tmp_path / "out")
    assert same_weights(load_bilm(tmp_path / "out"), load_bilm(weights))
    assert find_weights(tmp_path / "out").card() == CARD


def test_surprisals_have_a_head(weights, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_surprisal", config={"weights": str(weights)})
    nlp.to_disk(tmp_path / "nlp")
    assert find_weights(tmp_path / "nlp" / "elmo_surprisal").words()[3:] == ["a", "bank"]


def test_a_pipeline_without_a_biLM(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "nlp")
    with pytest.raises(ValueError, match=r"config\.json and weights\.safetensors"):
        find_weights(tmp_path / "nlp")
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger", name="elmo").add_label("N")
    nlp.initialize()
    nlp.to_disk(tmp_path / "nlp")
    with pytest.raises(ValueError, match="it is another component"):
        load_bilm(tmp_path / "nlp")


def test_a_pipeline_with_two(pipeline, weights, tmp_path):
    """One of another name is weights by its directory."""
    nlp = make_nlp(weights)
    nlp.add_pipe("elmo", name="second", config={"model": {"weights": "en_sm"}})
    nlp.to_disk(tmp_path / "nlp")
    for found in (load_bilm(tmp_path / "nlp"), load_bilm(tmp_path / "nlp" / "elmo")):
        assert same_weights(found, load_bilm(weights))
    assert same_weights(read(tmp_path / "nlp" / "second"), load_bilm("en_sm"))


@pytest.mark.parametrize("name", ["en_lost", "attack.inner", "made"])
def test_no_package_is_imported(name, tmp_path, monkeypatch):
    """Not even where something before a dot is one; a module may have been made without a file."""
    monkeypatch.setitem(sys.modules, "made", ModuleType("made"))
    (tmp_path / "attack.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match="no installed pipeline"):
        find_weights(name)
