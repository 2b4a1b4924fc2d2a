"""Models of ELMoForManyLangs: converted, they compute what the original computes.

The golden vectors are those of the original package, elmoformanylangs 0.0.4.post2.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc
from typer.testing import CliRunner

from spacy_elmo.cli import app
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.weights.convert.many_langs import load, read_config
from spacy_elmo.weights.find import load_bilm

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
    result = CliRunner().invoke(app, ["convert", str(TINY), str(out), "--lang", "xx"])
    assert result.exit_code == 0, result.output
    return out


def make_nlp(weights: Path):
    nlp = spacy.blank("xx")
    block = {"@architectures": "spacy-elmo.Elmo.v1", "weights": str(weights)}
    nlp.add_pipe("elmo", config={"store": ["layers"], "model": block})
    return nlp


def layers_of(nlp) -> list[np.ndarray]:
    docs = nlp.pipe(Doc(nlp.vocab, words=words) for words in SENTENCES)
    return [doc._.elmo_layers for doc in docs]


def difference(found: list[np.ndarray], others: list[np.ndarray]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(found, others, strict=True))


def test_all_layers_are_those_of_the_original(converted: Path) -> None:
    assert difference(layers_of(make_nlp(converted)), expected()) < TOLERANCE


def test_saved_pipelines_have_the_dictionaries(converted: Path) -> None:
    nlp = make_nlp(converted)
    nlp.initialize()
    again = make_nlp(converted).from_bytes(nlp.to_bytes())
    assert difference(layers_of(again), expected()) < TOLERANCE


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
    result = CliRunner().invoke(app, ["convert", str(model), str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "encoder.pkl" in result.output.replace("\n", "")
    assert not (tmp_path / "attacked").exists() and not (tmp_path / "out").exists()


def change_tensors(model: Path, name: str, change) -> None:
    tensors = torch.load(model / name, weights_only=True)
    change(tensors)
    torch.save(tensors, model / name)


@pytest.mark.parametrize(
    ("name", "change", "part"),
    [
        ("encoder.pkl", lambda t: t.pop(BIAS), "missing tensors"),
        ("encoder.pkl", lambda t: t.update(forward_layer_2=torch.ones(1)), "unknown"),
        ("token_embedder.pkl", lambda t: t.update(x=[1]), "'x' is no tensor of numbers"),
        # It would take all memory.
        ("encoder.pkl", lambda t: t.update({BIAS: torch.ones(1).expand(10**12)}), "is no tensor"),
    ],
)
def test_damaged_tensors(model: Path, name: str, change, part: str) -> None:
    change_tensors(model, name, change)
    with pytest.raises(ValueError, match=part):
        load(model)


@pytest.mark.parametrize(
    ("name", "change", "part"),
    [
        ("word.dic", lambda s: s.replace("cats\t", "cats\t1"), "must have ids from 0 on"),
        ("word.dic", lambda s: s.replace("cats\t4", "cats"), "word.dic"),
        ("sizes.json", lambda s: s.replace('"elmo"', '"lstm"'), "only an encoder 'elmo'"),
    ],
)
def test_damaged_files(model: Path, name: str, change, part: str) -> None:
    text = (model / name).read_text("utf-8")
    assert change(text) != text
    (model / name).write_text(change(text), "utf-8")
    with pytest.raises(ValueError, match=part):
        load(model)


@pytest.mark.parametrize("name", ["encoder.pkl", "sizes.json"])
def test_a_file_is_missing(name: str, model: Path, tmp_path: Path) -> None:
    """The error names that one, and no other."""
    (model / name).unlink()
    result = CliRunner().invoke(app, ["convert", str(model), str(tmp_path / "out")])
    assert result.exit_code == 1
    said = "".join(result.output.split())  # without the line breaks of a terminal
    assert "Nosuchfile" in said
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
