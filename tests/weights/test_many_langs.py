"""Models of ELMoForManyLangs: converted, they compute what the original computes.

The golden vectors are those of the original package, elmoformanylangs 0.0.4.post2.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from spacy.tokens import Doc

from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.weights.convert.many_langs import load, read_config
from spacy_elmo.weights.find import load_bilm

from ..cli.helpers import fail, succeed
from ..pipeline.helpers import make_nlp, max_difference

TINY = Path(__file__).parents[1] / "fixtures" / "many_langs_tiny"
SENTENCES = json.loads((TINY / "sentences.json").read_text("utf-8"))
TOLERANCE = 1e-5
BIAS = "forward_layer_1.state_linearity.bias"


def expected() -> list[np.ndarray]:
    with np.load(TINY / "layers.npz") as layers:
        return [layers[f"s{i}"] for i in range(len(SENTENCES))]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(TINY, tmp_path / "model"))


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("many") / "xx_many"
    succeed("convert", TINY, out, "--lang", "xx")
    return out


def test_all_layers_are_those_of_the_original(converted: Path) -> None:
    """Also in a saved pipeline, which has the dictionaries."""
    nlp, again = (make_nlp(converted, "xx", store=["layers"]) for _ in range(2))
    nlp.initialize()
    for pipeline in (nlp, again.from_bytes(nlp.to_bytes())):
        docs = pipeline.pipe(Doc(pipeline.vocab, words=words) for words in SENTENCES)
        assert max_difference([doc._.elmo_layers for doc in docs], expected()) < TOLERANCE


def test_words_and_characters_are_fine_tuned(converted: Path) -> None:
    bilm = load_bilm(converted).train()
    layers, _ = bilm.read(SENTENCES)
    sum(x.square().sum() for x in layers).backward()
    encoder = bilm.char_cnn
    for table in (encoder.word_embedding, encoder.embedding):
        assert table.weight.grad.abs().sum() > 0


def test_no_file_outside_of_the_directory_is_read(model: Path, tmp_path: Path) -> None:
    sizes = json.loads((model / "sizes.json").read_text())
    sizes["encoder"]["n_layers"] = 3
    (tmp_path / "sizes.json").write_text(json.dumps(sizes))
    (model / "config.json").write_text(json.dumps({"config_path": str(tmp_path / "sizes.json")}))
    assert read_config(model).n_layers == 2


def test_code_in_a_pickle_is_not_run(model: Path, tmp_path: Path) -> None:
    class Attack:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "attacked"),)

    (model / "encoder.pkl").write_bytes(pickle.dumps({"forward_layer_0": Attack()}, protocol=2))
    assert "encoder.pkl" in fail("convert", model, tmp_path / "out")
    assert not (tmp_path / "attacked").exists() and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "change", "part"),
    [
        ("encoder.pkl", lambda t: t.pop(BIAS), "missing tensors"),
        ("encoder.pkl", lambda t: t.update(forward_layer_2=torch.ones(1)), "unknown"),
        ("token_embedder.pkl", lambda t: t.update(x=[1]), "'x' is no tensor of numbers"),
        # It would take all memory.
        ("encoder.pkl", lambda t: t.update({BIAS: torch.ones(1).expand(10**12)}), "is no tensor"),
        ("word.dic", lambda s: s.replace("cats\t", "cats\t1"), "must have ids from 0 on"),
        ("word.dic", lambda s: s.replace("cats\t4", "cats"), "word.dic"),
        ("sizes.json", lambda s: s.replace('"elmo"', '"lstm"'), "only an encoder 'elmo'"),
    ],
)
def test_damaged_files(model: Path, name: str, change: Callable[[Any], Any], part: str) -> None:
    file = model / name
    if file.suffix == ".pkl":
        tensors = torch.load(file, weights_only=True)
        change(tensors)
        torch.save(tensors, file)
    else:
        text = file.read_text("utf-8")
        assert change(text) != text
        file.write_text(change(text), "utf-8")
    with pytest.raises(ValueError, match=part):
        load(model)


@pytest.mark.parametrize("name", ["encoder.pkl", "sizes.json"])
def test_a_file_is_missing(name: str, model: Path, tmp_path: Path) -> None:
    """The error names that one, and no other."""
    (model / name).unlink()
    said = fail("convert", model, tmp_path / "out")
    assert "No such file" in said
    files = {file.name for file in TINY.iterdir() if file.name != "config.json"}
    assert {file for file in files if f"/{file}" in said} == {name}


def test_the_sizes_of_the_published_models_are_known(model: Path) -> None:
    config = {"config_path": "/Users/them/cnn_50_100_512_4096_sample.json"}
    (model / "config.json").write_text(json.dumps(config))
    assert read_config(model).dim == 4096


def test_they_are_not_pretrained(converted: Path, tmp_path: Path) -> None:
    text = tmp_path / "train.txt"
    text.write_text("a cat sat on a mat .\n" * 50)
    config = {"paths": {"train": str(text), "dev": str(text), "weights": str(converted)}}
    with pytest.raises(ValueError, match="cannot be pretrained"):
        pretrain(PretrainConfig.from_dict(config), tmp_path / "out", quiet=True)
