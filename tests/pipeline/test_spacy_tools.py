"""spaCy's own commands, for pipelines with this component."""

import importlib
import json
import shutil
import sys

import spacy
from spacy.cli.init_config import fill_config
from spacy.cli.package import package
from thinc.api import Config

from .helpers import CARD, TEXTS, TOLERANCE, make_nlp, max_difference, vectors_of


def test_fill_config(monkeypatch, tmp_path):
    """Without any weights, the embedded ones neither."""
    monkeypatch.setattr("spacy_elmo.weights.find.EMBEDDED", tmp_path / "nothing")
    model = {
        "@architectures": "spacy.Tagger.v2",
        "tok2vec": {"@architectures": "spacy-elmo.Elmo.v1"},
    }
    components = {"elmo": {"factory": "elmo"}, "tagger": {"factory": "tagger", "model": model}}
    nlp = {"lang": "en", "pipeline": ["elmo", "tagger"]}
    Config({"nlp": nlp, "components": components}).to_disk(tmp_path / "base.cfg")
    fill_config(tmp_path / "config.cfg", tmp_path / "base.cfg")
    config = spacy.util.load_config(tmp_path / "config.cfg")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    expected = nlp.config["components"]["elmo"]  # the page on settings has them
    assert config["components"]["elmo"] == expected
    inline = config["components"]["tagger"]["model"]["tok2vec"]
    assert inline == {**expected["model"], "mix": None}


def test_package(own_weights, tmp_path, monkeypatch):
    nlp = make_nlp(own_weights, lang="en")
    nlp.meta.update(name="tiny", version="1.2.3")
    nlp.initialize()
    expected = vectors_of([nlp(text) for text in TEXTS])
    nlp.to_disk(tmp_path / "saved")
    (tmp_path / "out").mkdir()
    package(tmp_path / "saved", tmp_path / "out", create_wheel=False, create_sdist=False)
    shutil.rmtree(own_weights)
    shutil.rmtree(tmp_path / "saved")
    root = tmp_path / "out" / "en_tiny-1.2.3"
    meta = json.loads((root / "meta.json").read_text(encoding="utf-8"))
    assert meta["sources"] == CARD.meta["sources"]
    assert any(line.startswith("spacy-elmo") for line in meta["requirements"])
    assert "A corpus" in (root / "README.md").read_text(encoding="utf-8")
    shutil.copy(root / "meta.json", root / "en_tiny")  # as its setup.py does
    monkeypatch.syspath_prepend(root)
    loaded = importlib.import_module("en_tiny").load()
    data = root / "en_tiny" / "en_tiny-1.2.3"
    for name, text in CARD.documents.items():
        assert (data / "elmo" / name).read_text(encoding="utf-8") == text
    assert max_difference(vectors_of([loaded(text) for text in TEXTS]), expected) <= TOLERANCE
    sys.modules.pop("en_tiny")
