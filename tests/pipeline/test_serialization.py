import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import srsly
from spacy.language import Language

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.weights.layout import Card

from .helpers import (
    CARD,
    CONFIG,
    TEXTS,
    TOLERANCE,
    make_nlp,
    max_difference,
    vectors_of,
    write_int8,
    write_statistics,
    write_weights,
)


def by_disk(nlp: Language, path: Path) -> Language:
    nlp.to_disk(path / "saved")
    shutil.rmtree(path / "own")
    return spacy.load(path / "saved")


def by_bytes(nlp: Language, path: Path) -> Language:
    data, config = nlp.to_bytes(), nlp.config
    shutil.rmtree(path / "own")
    return spacy.blank("en").from_config(config).from_bytes(data)


def by_pickle(nlp: Language, path: Path) -> Language:
    data = pickle.dumps(nlp)
    shutil.rmtree(path / "own")
    return pickle.loads(data)


WAYS = pytest.mark.parametrize("way", [by_disk, by_bytes, by_pickle])


def warm(path: Path) -> Path:
    """Weights that ask for a warm state and bring none, as published ones."""
    return write_weights(path, config=replace(CONFIG, initial_state="warm"))


def with_statistics(path: Path) -> Path:
    write_statistics(write_weights(path), [text.split() for text in TEXTS if text.split()])
    return path


@WAYS
@pytest.mark.parametrize(
    ("write", "used_before"),
    [(write_weights, False), (write_weights, True), (warm, False), (write_int8, False),
     (with_statistics, True)],
)  # fmt: skip
def test_same_vectors_with_the_source_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Any, write: Any, used_before: bool
) -> None:
    weights = write(tmp_path / "own")
    nlp, other = make_nlp(weights), make_nlp(weights)
    expected = [other(text) for text in TEXTS]
    if used_before:
        nlp(TEXTS[0])
    loaded = way(nlp, tmp_path)
    assert not weights.exists()
    monkeypatch.setattr(BiLM, "compute_warm_state", None)  # of another version, say
    loaded.to_disk(tmp_path / "again")
    for each in (loaded, nlp, spacy.load(tmp_path / "again")):
        docs = [each(text) for text in TEXTS]
        assert max_difference(vectors_of(docs), vectors_of(expected)) <= TOLERANCE
        for doc, same in zip(docs, expected, strict=True):  # statistics have half precision
            np.testing.assert_allclose(doc.vector, same.vector, atol=2e-3)
        assert each.get_pipe("elmo").bilm.model.config.int8 == (write is write_int8)


@WAYS
def test_settings_and_mix_stay(own_weights, tmp_path, way):
    settings = {"store": ["layers"], "vectors": "vocab", "segments": "doc", "max_words": 8}
    mix = {"initial_weights": [1.0, 0.0, 3.0], "gamma": 2.0, "layer_norm": True}
    nlp = make_nlp(own_weights, **settings, **mix)
    text = "One sentence. Another one, with some words more! And one more."
    doc = nlp(text)
    mixed = nlp.get_pipe("elmo").model.get_ref("mix")
    mixed.set_param("w", mixed.get_param("w") + 1)
    mixed.set_param("gamma", mixed.get_param("gamma") * 1.5)
    loaded = way(nlp, tmp_path)
    same = loaded(text)
    assert np.abs(same.tensor - 1.5 * doc.tensor).max() <= TOLERANCE
    assert max_difference([same._.elmo_layers], [doc._.elmo_layers]) <= TOLERANCE
    assert not same.user_hooks
    assert loaded.get_pipe("elmo").vectors == "vocab"


def test_pickles_in_a_fresh_process(weights, tmp_path):
    nlp = make_nlp(weights)
    doc = nlp(TEXTS[0])
    (tmp_path / "nlp").write_bytes(pickle.dumps(nlp))
    (tmp_path / "doc").write_bytes(pickle.dumps(doc))
    code = (
        "import pickle, sys; from pathlib import Path; thing = pickle.loads(Path(sys.argv[1])"
        ".read_bytes()); doc = thing(sys.argv[2]) if sys.argv[2] else thing; "
        "print(*doc._.elmo.tolist())"
    )
    for name, text in [("nlp", TEXTS[0]), ("doc", "")]:
        command = [sys.executable, "-c", code, tmp_path / name, text]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        found = np.array(done.stdout.split(), dtype="float32")
        assert np.abs(found - doc._.elmo).max() <= TOLERANCE


@pytest.mark.parametrize(
    ("name", "default", "value"),
    [
        ("max_words", 400, 8),
        ("initial_state", "auto", "warm"),
        ("mix.layer_norm", False, True),
    ],
)
def test_settings_can_change_after_loading(own_weights, tmp_path, name, default, value):
    """And back: the weights are saved as they are."""
    text = "The bank raised its rates again and again and again"
    plain, other = make_nlp(own_weights), make_nlp(own_weights, **{name.split(".")[-1]: value})
    assert max_difference([plain(text).tensor], [other(text).tensor]) > 1e-4
    for nlp, setting, expected in ((plain, value, other), (other, default, plain)):
        nlp.to_disk(tmp_path / "saved")
        config = {f"components.elmo.model.{name}": setting}
        loaded = spacy.load(tmp_path / "saved", config=config)
        assert max_difference([loaded(text).tensor], [expected(text).tensor]) <= TOLERANCE


def test_saved_bytes_are_half_where_that_loses_nothing(own_weights):
    """Weights that were loaded from half precision are saved in it."""
    nlp = make_nlp(own_weights)
    full = len(nlp.get_pipe("elmo").to_bytes(exclude=["vocab"]))
    nlp.get_pipe("elmo").bilm.model.half().float()
    half = len(nlp.get_pipe("elmo").to_bytes(exclude=["vocab"]))
    n_numbers = sum(p.numel() for p in nlp.get_pipe("elmo").bilm.model.parameters())
    assert 2 * n_numbers <= full - half < 2 * n_numbers + 16  # the format pads its header


def test_saving_the_component_alone_writes_into_its_own_folder(own_weights, tmp_path):
    nlp = make_nlp(own_weights)
    nlp.to_disk(tmp_path / "saved")
    meta_json = tmp_path / "saved" / "meta.json"
    before = meta_json.read_bytes()
    nlp.get_pipe("elmo").to_disk(tmp_path / "saved" / "elmo")
    assert meta_json.read_bytes() == before
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {
        "config.cfg", "elmo", "meta.json", "tokenizer", "vocab"
    }  # fmt: skip


def test_sources(own_weights, tmp_path):
    nlp = make_nlp(own_weights)
    nlp.meta["sources"] = [{"name": "Another corpus"}]
    for _ in range(2):  # once each
        nlp.initialize()
    assert nlp.meta["license"] == CARD.meta["license"]
    expected = [{"name": "Another corpus"}, *CARD.meta["sources"]]
    assert nlp.meta["sources"] == expected
    assert by_disk(nlp, tmp_path).meta["sources"] == expected


def test_no_licence_of_other_weights_stays(own_weights, tmp_path):
    make_nlp(own_weights).to_disk(tmp_path / "saved")
    licence = tmp_path / "saved" / "elmo" / "LICENSE"
    assert licence.exists()
    make_nlp(write_weights(tmp_path / "w", card=Card())).to_disk(tmp_path / "saved")
    assert not licence.exists() and not licence.with_name("README.md").exists()


def test_saved_without_its_model(tmp_path):
    """What is not saved is not needed."""
    nlp = make_nlp("nowhere")
    nlp.get_pipe("elmo").to_disk(tmp_path / "part", exclude=["model", "vocab"])
    assert [file.name for file in (tmp_path / "part").iterdir()] == ["cfg"]
    nlp.to_disk(tmp_path / "saved", exclude=["elmo"])
    assert not (tmp_path / "saved" / "elmo").exists()
    with pytest.raises(ValueError, match="'nowhere'"):
        nlp.to_disk(tmp_path / "whole")


def test_weights_written_over_after_loading(own_weights):
    nlp = make_nlp(own_weights)
    expected = nlp(TEXTS[0]).tensor
    (own_weights / "weights.safetensors").write_bytes(b"")
    other_words = nlp(TEXTS[-1] + TEXTS[-2])
    assert np.isfinite(other_words.tensor).all()
    assert max_difference([nlp(TEXTS[0]).tensor], [expected]) <= TOLERANCE


@pytest.mark.parametrize(
    "part, node, value, message",
    [
        ("shims", 1, [], "a part of its model is missing"),
        ("params", 2, {"w": np.float32(0), "gamma": np.ones(1, "f")}, r"expected 3 finite ones"),
        ("params", 2, {"w": np.ones(1, "f"), "gamma": np.ones(3, "f")}, r"expected 3 finite ones"),
        ("nodes", 0, {"refs": {"bilm": 1, "mix": 1}}, "a part of its model is missing"),
    ],
)
def test_data_without_a_part(own_weights, tmp_path, part, node, value, message):
    """thinc leaves what the data lack as it is: weights of another pipeline, or none."""
    make_nlp(own_weights).get_pipe("elmo").to_disk(tmp_path / "saved", exclude=["vocab"])
    file = tmp_path / "saved" / "model"
    data = srsly.msgpack_loads(file.read_bytes())
    found = data[part][node]
    data[part][node] = {**found, **value} if isinstance(value, dict) else value
    file.write_bytes(srsly.msgpack_dumps(data))
    nlp = make_nlp(write_weights(tmp_path / "other", seed=2))
    nlp("It has weights of its own.")
    with pytest.raises(ValueError, match=f"Cannot read the component 'elmo' .*saved: .*{message}"):
        nlp.get_pipe("elmo").from_disk(tmp_path / "saved", exclude=["vocab"])


# Where sentences start from


def read(weights, **settings):
    return vectors_of(list(make_nlp(weights, **settings).pipe(TEXTS)))


def test_auto_is_what_the_weights_say(weights, tmp_path):
    warm_weights = warm(tmp_path / "warm")
    from_zero, from_warm = read(weights), read(warm_weights)  # the same numbers otherwise
    assert max_difference(from_zero, from_warm) > 0.01
    for each in (weights, warm_weights):
        assert max_difference(read(each, initial_state="zero"), from_zero) == 0
        assert max_difference(read(each, initial_state="warm"), from_warm) == 0
