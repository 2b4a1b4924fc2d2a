from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.pretraining.config import PretrainConfig, read_config, split_overrides
from spacy_elmo.util.files import write_json

from .helpers import SETTINGS, make_config

DATA: dict[str, dict[str, Any]] = {
    "paths": {"train": ["one", "two"], "dev": "a#b", "vocab": None},
    "model": {"filters": [[1, 4], [2, 8]], "projection_dim": 8, "dim": 16},
    "training": {"max_steps": 20, "warmup_steps": 0, "decay_steps": 0, "seed": 3},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_json(tmp_path / "config.json", DATA)
    return tmp_path / "config.json"


def test_settings_are_read(path: Path) -> None:
    config = read_config(path)
    assert config.paths.train == ["one", "two"]
    assert config.paths.dev == "a#b"
    assert config.paths.vocab is None
    assert config.model.filters == ((1, 4), (2, 8))
    assert config.training.seed == 3
    assert config.softmax.kind == "sampled"


def test_overrides_are_put_over_the_file(path: Path) -> None:
    line = [
        "--paths.train", "./shards", "--paths.dev=dev=1", "--training.learning_rate", "1e-3",
        "--training.max-steps", "40", "--paths.vocab", "null", "--softmax.kind", "full",
    ]  # fmt: skip
    config = read_config(path, split_overrides(line)[0])
    assert config.paths.train == "./shards"
    assert config.paths.dev == "dev=1"
    assert config.training.learning_rate == 0.001
    assert config.training.max_steps == 40
    assert config.softmax.kind == "full"


def test_a_config_is_read_as_it_was_written(tmp_path: Path) -> None:
    config = make_config(Path("train"), Path("안녕"), {"training.learning_rate": 1e-5})
    write_json(tmp_path / "config.json", config.to_dict())
    assert read_config(tmp_path / "config.json") == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training.max_steps": 6}, r"max_steps is 6; .* warmup_steps \(2\) and decay_steps \(5\)"),
        ({"training.max_steps": 0}, "max_steps is 0; it must be greater than or equal to 1"),
        ({"training.batch_words": 40.0}, r"batch_words is 40\.0; it must be a valid integer"),
        ({"training.batch_words": True}, "batch_words is True; it must be a valid integer"),
        ({"training.learning_rate": 0}, "learning_rate is 0; it must be greater than 0"),
        ({"training.learning_rate": "high"}, "'high'; it must be a valid number\\."),
        ({"training.learning_rate": float("nan")}, "learning_rate is nan"),
        ({"training.seed": 2**64}, "seed is 18446744073709551616; .* equal to 9223372036854775807"),
        ({"training.batch_words": 10**30}, "batch_words is 10{30}; it must be less than"),
        ({"training.dropout": 1.0}, "dropout is 1.0; it must be less than 1"),
        ({"training.matmul_precision": "low"}, "it must be 'highest', 'high' or 'medium'"),
        ({"training.checkpoint_seconds": -1}, "checkpoint_seconds is -1"),
        ({"training.speed": 3}, r"\[training\] has unknown settings \['speed'\]; known are .*seed"),
        ({"softmax.kind": "cnn"}, "it must be 'sampled' or 'full'"),
        ({"vocab.max_size": 3}, "max_size is 3; it must be greater than or equal to 4"),
        ({"corpus.max_words": 0}, "max_words is 0"),
        ({"paths.train": 7}, "train is 7; it must be a valid string or it must be a valid list"),
        ({"paths.train": ["a", 7]}, r"train is \['a', 7\]; it must be a valid string"),
        ({"paths.vocab": ["a"]}, "it must be a valid string"),
        ({"model.dim": 4}, r"\[model\] .*projection_dim is 8; it must not be larger than dim"),
        ({"model.size": 4}, r"\[model\] .*unknown settings \['size'\]"),
        ({"model.initial_state": "warm"}, r"\[model\] initial_state is 'warm'.*requires \"zero\""),
        ({"modle.dim": 4}, r"unknown sections \['modle'\]; known are \['model', 'paths'"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_config(changes=changes)


def test_the_initial_state_is_that_of_the_training() -> None:
    config = make_config(changes={"training.state": "carried"})
    assert config.model.initial_state == "warm"


def test_there_is_no_default_model() -> None:
    with pytest.raises(ValueError, match=r"no \[model\] section"):
        PretrainConfig.from_dict({k: v for k, v in SETTINGS.items() if k != "model"})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config.json", "[paths]", r"Cannot read the JSON file .*config\.json"),
        (
            "config.json",
            '{"training": [1], "model": {}}',
            r"\[training\] is \[1\]; give its settings",
        ),
        ("config.json", '{"paths": null, "model": {}}', r"\[paths\] is None; give its settings"),
        ("config.cfg", "[paths]", r"config\.cfg'.* only spaCy can load: .*elmo pretrain"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    for resumed in (None, tmp_path):
        with pytest.raises(ValueError, match=message):
            read_config(tmp_path / name, resumed=resumed)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Cannot read .*nowhere\.json"):
        read_config(tmp_path / "nowhere.json")


def test_wrong_overrides_are_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="unknown settings"):
        read_config(path, {"training.steps": 4})
    with pytest.raises(ValueError, match=r"'train' of \[paths\.train\] is a setting"):
        read_config(path, {"paths.train.x": 4})


def test_overrides_may_stand_anywhere_on_the_command_line() -> None:
    line = ["cfg", "--paths.train", "x", "out.d", "--resume", "--a.b=3", "-g", "0"]
    assert split_overrides(line) == (
        {"paths.train": "x", "a.b": 3},
        ["cfg", "out.d", "--resume", "-g", "0"],
    )
    with pytest.raises(ValueError, match=r"'--paths\.dev' has no value"):
        split_overrides([*line, "--paths.dev"])
