"""A biLM's subwords as the static vectors of a pipeline."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree, rmtree

import numpy as np
import pytest
import spacy
from spacy.cli.init_config import init_config
from spacy.util import load_model_from_config
from spacy.vectors import Vectors
from thinc.api import Config

from spacy_elmo import add_elmo
from spacy_elmo.weights.subwords import FloretSettings

from .helpers import SUBWORD_TABLE, write_subwords, write_weights
from .learning import make_examples
from .test_add import learn, make_nlp, tok2vec_of

CALLBACK = {"@callbacks": "spacy-elmo.subword_vectors.v1", "component": "elmo"}
WORDS = ["bank", "Größe", "안녕하세요", "counter-revolutionaries", "x"]
SETTINGS = FloretSettings(n_hashes=3, hash_seed=5, start="^")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_weights(tmp_path_factory.mktemp("weights") / "subwords")
    write_subwords(path, SETTINGS)
    return path


def make_config(weights: Path, **settings: object) -> Config:
    config = init_config(lang="en", pipeline=["tagger", "ner"])
    return add_elmo(config, weights=weights, **settings)


def test_added_to_a_config(weights: Path, tmp_path: Path) -> None:
    notes: list[str] = []
    config = make_config(weights, note=notes.append)
    assert config["initialize"]["before_init"] == CALLBACK
    assert any("subwords" in note for note in notes)
    for name in ("tagger", "ner"):
        assert tok2vec_of(config, name)["embed"]["include_static_vectors"] is True
    assert add_elmo(config).to_str() == config.to_str()
    nlp = load_model_from_config(config)  # with its variables, as `spacy train` leaves them
    assert learn(nlp)
    nlp.to_disk(tmp_path)
    theirs = Vectors(
        strings=nlp.vocab.strings, data=SUBWORD_TABLE, mode="floret", minn=4, maxn=5, hash_count=3,
        hash_seed=5, bow="^", eow=">",
    )  # fmt: skip
    for pipeline in (nlp, spacy.load(tmp_path)):
        found = np.stack([pipeline.vocab[word].vector for word in WORDS])
        np.testing.assert_allclose(found, theirs.get_batch(WORDS), atol=0.02)
        assert np.abs(found).sum(axis=1).min() > 0
        # What is compared stays ELMo's.
        assert pipeline("The bank.")[1].vector.shape != found[0].shape


def test_initialized_again_with_the_source_gone(weights: Path, tmp_path: Path) -> None:
    source = tmp_path / "weights"
    copytree(weights, source)
    nlp = make_nlp(make_config(source))
    assert learn(nlp)
    nlp.to_disk(tmp_path / "saved")
    rmtree(source)
    loaded = spacy.load(tmp_path / "saved")
    assert learn(loaded)
    assert np.array_equal(loaded.vocab["bank"].vector, nlp.vocab["bank"].vector)
    with pytest.raises(ValueError, match="Cannot find the ELMo weights"):
        learn(make_nlp(loaded.config))


def test_vectors_that_a_config_has_stay(weights: Path) -> None:
    config = init_config(lang="en", pipeline=["tagger"])
    config["initialize"]["vectors"] = "some_vectors"
    assert add_elmo(config, weights=weights)["initialize"]["before_init"] is None
    assert make_config(weights, light=True)["initialize"]["before_init"] is None


def test_a_biLM_without_subwords(tmp_path: Path) -> None:
    config = make_config(write_weights(tmp_path / "plain"))
    assert config["initialize"]["before_init"] is None
    assert tok2vec_of(config, "tagger")["embed"]["include_static_vectors"] is False


def test_what_is_wrong_is_named(weights: Path, tmp_path: Path) -> None:
    def message(config: Config) -> str:
        nlp = make_nlp(config)
        with pytest.raises(ValueError, match="subword_vectors") as caught:
            nlp.initialize(lambda: make_examples(nlp))
        return str(caught.value)

    config = make_config(weights)
    config["initialize"]["before_init"]["component"] = "tagger"
    assert "no biLM in the component 'tagger'" in message(config)
    config = make_config(weights)
    config["components"]["elmo"]["model"]["weights"] = str(write_weights(tmp_path / "plain"))
    assert "no subwords" in message(config)


def test_vectors_that_are_set_later_win(
    weights: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mine = spacy.blank("en")
    mine.vocab.set_vector("bank", np.ones(7, dtype="float32"))
    mine.to_disk(tmp_path / "mine")
    config = make_config(weights)
    config["initialize"]["vectors"] = str(tmp_path / "mine")
    nlp = load_model_from_config(config)
    nlp.initialize(lambda: make_examples(nlp))
    assert nlp.vocab["bank"].vector.shape == (7,)
    assert "the subwords of 'elmo' are not used" in caplog.text


def test_other_weights_take_their_subwords_away(weights: Path, tmp_path: Path) -> None:
    config = make_config(weights)
    plain = add_elmo(config, weights=write_weights(tmp_path / "plain"))
    assert plain["initialize"]["before_init"] is None
    assert tok2vec_of(plain, "tagger")["embed"]["include_static_vectors"] is False
    assert learn(make_nlp(plain))
    assert add_elmo(plain, weights=weights) == config
