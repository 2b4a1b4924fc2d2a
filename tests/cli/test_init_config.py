"""``python -m spacy elmo init-config``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from spacy_elmo.cli.init_config import MODELS
from spacy_elmo.pretraining.config import read_config
from spacy_elmo.weights.find import load_bilm

from .helpers import succeed


def init_config(*arguments: object) -> str:
    return succeed("init-config", *arguments)


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("size", MODELS)
def test_each_is_a_config(size: str, gpu: bool, tmp_path: Path) -> None:
    out = tmp_path / "new" / "config.cfg"
    init_config(out, "--size", size, "--lang", "ko", *(["--gpu"] if gpu else []))
    config = read_config(out)
    assert config.model.dim == MODELS[size]["dim"]
    text = out.read_text(encoding="utf-8")
    assert "tokenize train.txt corpus/train --lang ko" in text
    assert ("--gpu-id 0" in text) == gpu
    assert f"{config.model.width}-dimensional vectors" in text


def test_the_default_is_the_embedded_model(tmp_path: Path) -> None:
    printed = init_config()
    (tmp_path / "config.cfg").write_text(printed, encoding="utf-8")
    config = read_config(tmp_path / "config.cfg")
    model = load_bilm("en_sm")
    assert config.model == replace(model.config, int8=False)  # gates are rounded afterwards
    parameters = sum(p.numel() for p in model.parameters())
    assert f"{parameters / 1e6:.1f} M parameters" in printed


def test_the_smallest_size_trains_on_a_small_text(tmp_path: Path) -> None:
    """With fewer words in its vocabulary than the config's candidates."""
    text = tmp_path / "text.txt"
    text.write_text("The bank lent us money. We sat on the bank.\n" * 10, encoding="utf-8")
    config, corpus, out = tmp_path / "config.cfg", tmp_path / "corpus", tmp_path / "out"
    steps = ["--training.max_steps", 4, "--training.warmup_steps", 1, "--training.decay_steps", 1]
    init_config(config, "--size", "xs")
    succeed("tokenize", text, corpus)
    succeed("pretrain", config, out, "--paths.train", corpus, "--paths.dev", corpus, *steps)
    found = json.loads(succeed("info", out / "model-last", "-j"))
    assert found["vectors"]["width"] == 128
    assert found["language model"]["words"] == 13  # 10 and the special words
