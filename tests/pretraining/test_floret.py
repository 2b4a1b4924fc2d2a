from __future__ import annotations

import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.subwords import SubwordSettings
from spacy_elmo.pretraining.config import PretrainConfig, read_config
from spacy_elmo.pretraining.data.floret import floret_settings, read_floret
from spacy_elmo.pretraining.model_shape import with_subwords
from spacy_elmo.pretraining.run.checkpoint import CHECKPOINT
from spacy_elmo.pretraining.train import pretrain
from spacy_elmo.util.files import write_json
from spacy_elmo.weights.find import load_bilm

from .helpers import make_config, prose, same_weights, stop_after, write_text

TABLE = np.random.default_rng(0).normal(size=(31, 5)).round(4).astype("float32")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    lines = ["31 5 3 4 2 77 < >"]
    lines += [" ".join(map(str, [row, *values])) for row, values in enumerate(TABLE)]
    file = tmp_path / "table.floret"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_a_file_is_read(path: Path) -> None:
    assert floret_settings(path) == SubwordSettings(31, 5, 3, 4, 2, 77)
    assert np.array_equal(read_floret(path).numpy(), TABLE)


def test_the_package_itself_writes_such_files(tmp_path: Path) -> None:
    floret = pytest.importorskip("floret")
    text = write_text(tmp_path / "text.txt", prose() * 20)
    model = floret.train_unsupervised(
        str(text), mode="floret", bucket=50, dim=6, minn=2, maxn=4, hashCount=3, minCount=1,
        epoch=1, thread=1, verbose=0,
    )  # fmt: skip
    model.save_floret_vectors(str(tmp_path / "it.floret"))
    settings = floret_settings(tmp_path / "it.floret")
    assert settings == SubwordSettings(50, 6, 2, 4, 3)
    assert read_floret(tmp_path / "it.floret").shape == (50, 6)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:-40], "announces 31 rows of 5 numbers|number of columns"),
        (lambda text: text.replace("\n3 ", "\n4 "), "not numbered in order"),
        (lambda text: text.replace("< >", ""), "must have the 8 settings"),
        (lambda text: "31 5\n", "must have the 8 settings"),
        (lambda text: text.replace("\n0 ", "\n0 nan", 1), "announces|number of columns|convert"),
    ],
)
def test_a_damaged_file_is_named(path: Path, damage: Any, message: str) -> None:
    path.write_text(damage(path.read_text("utf-8")), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"table\.floret(.|\n)*({message})"):
        read_floret(path)


def test_the_block_follows_from_the_file(path: Path) -> None:
    block = asdict(floret_settings(path))
    assert with_subwords(None, str(path)) == {"subwords": block}
    assert with_subwords({"dim": 3, "subwords": {"n_rows": 31}}, str(path)) == {
        "dim": 3,
        "subwords": block,
    }
    with pytest.raises(ValueError, match=r"\[model\.subwords\] has {'n_rows': 30}"):
        with_subwords({"subwords": {"n_rows": 30}}, str(path))


def test_a_run_starts_from_it_and_is_resumed_without_it(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = write_text(tmp_path / "text.txt", prose())
    config = make_config(text, text, {"paths.subwords": str(path)})
    pretrain(config, tmp_path / "whole", quiet=True)
    with monkeypatch.context() as patch:
        stop_after(patch, 7)
        assert pretrain(config, tmp_path / "parts", quiet=True).step == 7
    path.unlink()
    user = tmp_path / "user.json"
    data = make_config(text, text).to_dict()
    data["paths"]["subwords"] = str(path)
    write_json(user, data)
    pretrain(lambda out: read_config(user, None, out), tmp_path / "parts", resume=True, quiet=True)
    assert same_weights(tmp_path / "whole" / CHECKPOINT, tmp_path / "parts" / CHECKPOINT)
    subwords = load_bilm(tmp_path / "whole" / "model-last").char_cnn.subwords
    assert subwords is not None
    moved = (subwords.table.detach() - torch.from_numpy(TABLE)).abs()
    assert 0 < float(moved.max()) < 1  # trained on
    assert float(subwords.projection.weight.detach().abs().max()) > 0


def test_a_bilm_without_subwords_gets_them(tmp_path: Path, path: Path) -> None:
    """And computes what it did before, until it is trained."""
    text = write_text(tmp_path / "text.txt", prose())
    pretrain(make_config(text, text, {"training.max_steps": 9}), tmp_path / "one", quiet=True)
    start = tmp_path / "one" / "model-last"
    settings: dict[str, Any] = {
        "paths": {"train": str(text), "dev": str(text), "weights": str(start)},
        "training": {"max_steps": 1, "warmup_steps": 0, "decay_steps": 0, "learning_rate": 1e-12},
    }
    settings["paths"]["subwords"] = str(path)
    config = PretrainConfig.from_dict(settings)
    assert config.model.subwords == floret_settings(path)
    progress = pretrain(config, tmp_path / "two", quiet=True)
    assert progress.before is not None
    words = prose()[0]
    one, two = load_bilm(start), load_bilm(tmp_path / "two" / "model-last")
    torch.testing.assert_close(one.encode(words), two.encode(words), atol=1e-6, rtol=0)
    shutil.rmtree(start)
    settings["paths"]["weights"] = str(tmp_path / "two" / "model-last")
    with pytest.raises(ValueError, match=r"subwords .*has its own; remove one of the two"):
        PretrainConfig.from_dict(settings)


def test_a_run_trains_them_itself(tmp_path: Path) -> None:
    pytest.importorskip("floret")
    text = write_text(tmp_path / "text.txt", prose() * 9)
    settings: dict[str, Any] = {
        "training.subword_epochs": 3,
        "model.subwords": {"n_rows": 40, "vector_dim": 6, "min_n": 2, "max_n": 3},
    }
    for name in ("one", "two"):  # the same seed, the same table
        pretrain(make_config(text, text, settings), tmp_path / name, quiet=True)
    assert same_weights(tmp_path / "one" / CHECKPOINT, tmp_path / "two" / CHECKPOINT)
    subwords = load_bilm(tmp_path / "one" / "model-last").char_cnn.subwords
    assert subwords is not None and subwords.table.shape == (40, 6)
    settings["model.subwords"]["hash_seed"] = 1
    with pytest.raises(ValueError, match="floret itself can only train"):
        pretrain(make_config(text, text, settings), tmp_path / "three", quiet=True)


def test_one_setting_is_enough(path: Path) -> None:
    config = make_config(changes={"training.subword_epochs": 2})
    assert config.model.subwords == SubwordSettings()
    with pytest.raises(ValueError, match=r"subword_epochs is 2; \[paths\] subwords is set too"):
        make_config(changes={"training.subword_epochs": 2, "paths.subwords": str(path)})


def test_without_the_package_an_error_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "floret", None)
    text = write_text(tmp_path / "text.txt", prose())
    config = make_config(text, text, {"training.subword_epochs": 1})
    with pytest.raises(ValueError, match=r"pip install 'spacy-elmo\[subwords\]'"):
        pretrain(config, tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()
