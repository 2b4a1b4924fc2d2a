from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spacy_elmo.pretraining.config import read_config
from spacy_elmo.weights.find import load_bilm

from .helpers import make_config

RECIPES = sorted((Path(__file__).parents[2] / "project" / "configs").glob("pretrain_*.cfg"))
TEXT = """
[paths]
train = ["one", "two"]
dev = "a#b"

[model]
filters = [[1, 4], [2, 8]]
projection_dim = 8
dim = 16

[training]
max_steps = 20
warmup_steps = 0
decay_steps = 0
seed = 3

[vocab]
max_size = ${training.max_steps}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "config.cfg").write_text(TEXT, encoding="utf-8")
    return tmp_path / "config.cfg"


def test_settings_and_defaults_and_overrides(path) -> None:
    config = read_config(path, {"training.learning_rate": 0.5, "softmax.kind": "full"})
    paths = config.paths
    assert (paths.train, paths.dev, paths.vocab) == (["one", "two"], "a#b", None)
    assert config.model is not None and config.model.filters == ((1, 4), (2, 8))
    assert (config.training.seed, config.training.learning_rate) == (3, 0.5)
    assert (config.vocab.max_size, config.vocab.min_count, config.softmax.kind) == (20, 2, "full")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_recipes(recipe) -> None:
    config = read_config(recipe, {"paths.train": "a b", "training.max_steps": 30000})
    assert (config.paths.train, config.training.max_steps) == ("a b", 30000)
    if config.model is None:
        assert (config.paths.weights, config.training.max_epochs) == ("en_sm", 1)
        config = config.with_model(load_bilm("en_sm").config, "en_sm")
        assert config.model == replace(load_bilm("en_sm").config, int8=False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training.minutes": float("nan")}, "minutes is nan; it must be less than or equal to"),
        ({"training.speed": 3}, r"\[training\] has unknown settings \['speed'\]; known are .*seed"),
        ({"model.dim": 4}, r"\[model\] .*projection_dim is 8; it must not be larger than dim"),
        ({"model.initial_state": "warm"}, r"\[model\] initial_state is 'warm'; set it to \"zero\""),
        ({"modle.dim": 4}, r"unknown sections \['modle'\]; known are \['model', 'paths'"),
        ({"corpora.test": {"@readers": "x"}}, r"unknown block \[corpora\.test\]"),
        (
            {"corpora.train": {"@readers": "x"}, "paths.train": "x"},
            r"both \[corpora\.train\] and \[paths\] train are set",
        ),
    ],
)
def test_wrong_settings_are_refused(changes, message) -> None:
    with pytest.raises(ValueError, match=message):
        make_config(changes=changes)


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("[speed]\nx = 3\n", {}, r"unknown sections \['speed'\]"),
        ("[speed]\nx = ${a.b}\n", {}, "Cannot read the config"),
        ("", {"paths.train.x": 4}, r"(?s)Cannot read the config .*paths -> train -> x"),
    ],
)
def test_wrong_files_and_overrides_are_refused(path, text, overrides, message) -> None:
    path.write_text(TEXT + text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_config(path, overrides)
    with pytest.raises(ValueError, match=r"nowhere\.cfg"):
        read_config(path.with_name("nowhere.cfg"))
