"""The settings of pretraining, and what a config names: readers, a teacher, code of one's own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_elmo.pretraining.config import read_config
from spacy_elmo.pretraining.prepare import find_reader
from spacy_elmo.text.readers import Texts
from spacy_elmo.text.shards import Shards, write_meta
from spacy_elmo.weights.find import find_weights, load_bilm

from ..cli.helpers import fail, succeed
from .helpers import PROSE, config_text, make_config, same_weights


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(PROSE * 3, encoding="utf-8")
    return path


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_config(more: str = "", **changes: Any) -> Path:
        path = tmp_path / "config.cfg"
        config = make_config(changes={k.replace("__", "."): v for k, v in changes.items()})
        path.write_text(config_text(config) + more, encoding="utf-8")
        return path

    return write_config


def readers(train: str, dev: str, settings: str = "") -> str:
    blocks = (
        f"[corpora.{name}]\n{block}{settings}\n" for name, block in [("train", train), ("dev", dev)]
    )
    return "\n[corpora]\n\n" + "\n".join(blocks)


def texts(path: Path) -> str:
    return f'@readers = "spacy-elmo.Texts.v1"\npaths = {json.dumps(str(path))}\n'


def test_raw_text_without_a_reader_is_refused(write, text, tmp_path) -> None:
    """As the text to train on and as the held-out one; unless a meta.json describes it."""
    shards = tmp_path / "shards"
    text.write_text(re.sub(" ([,.?!])", r"\1", PROSE * 3))
    succeed("tokenize", text, shards)
    for train, dev, name in [(text, shards, "train"), (shards, text, "dev")]:
        paths = ("--paths.train", train, "--paths.dev", dev)
        said = fail("pretrain", write(), tmp_path / "out", *paths)
        assert f"The {name} text" in said and "is not tokenized" in said
        assert "Run `python -m spacy elmo tokenize` first" in said
        assert not (tmp_path / "out").exists()
    path = write(training__max_steps=2)
    write_meta(text.parent, "en")
    succeed("pretrain", path, tmp_path / "out", "--paths.train", text, "--paths.dev", text)


def test_raw_text_gives_what_its_shards_give(write, text, tmp_path) -> None:
    shards = tmp_path / "shards"
    succeed("tokenize", text, shards)
    same = {"training__max_steps": 12, "training__seed": 3}
    succeed("pretrain", write(readers(texts(text), texts(text)), **same), tmp_path / "raw")
    of_shards = f'@readers = "spacy-elmo.Shards.v1"\npaths = "{shards}"\n'
    succeed("pretrain", write(readers(of_shards, of_shards), **same), tmp_path / "read")
    paths = ["--paths.train", shards, "--paths.dev", shards]
    succeed("pretrain", write(**same), tmp_path / "paths", *paths)
    for name in ("read", "paths"):
        weights = "model-last/weights.safetensors"
        assert same_weights(tmp_path / "raw" / weights, tmp_path / name / weights)
    assert find_weights(tmp_path / "raw" / "model-best").card().meta == {"lang": "en"}


def test_a_run_from_raw_text_is_resumed(write, text, tmp_path) -> None:
    path = write(readers(texts(text), texts(text)), training__max_steps=12)
    out = tmp_path / "out"
    succeed("pretrain", path, out, "--training.max_steps", 8)
    succeed("pretrain", out / "pretrain.cfg", out, "--resume", "-q")
    text.write_text(PROSE)
    assert "Cannot resume: the texts are not" in fail("pretrain", path, out, "--resume")
    path = write(readers(texts(text) + 'column = "title"\n', texts(text)), training__max_steps=12)
    assert "Cannot resume, because these settings" in fail("pretrain", path, out, "--resume")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ('@readers = "nothing.v1"', r"corpora\.dev.*nothing\.v1"),
        ('paths = "x"', r"corpora\.dev\] must be a block with @readers"),
        ('@readers = "spacy.JsonlCorpus.v1"\npath = "x"', r"JsonlCorpus\.v1.* does not read texts"),
        ('@readers = "spacy-elmo.Texts.v1"\npath = "x"', r"(?s)missing required .*'paths'"),
    ],
)
def test_readers_that_cannot_be_made(write, block, message) -> None:
    config = read_config(write(f"\n[corpora]\n[corpora.dev]\n{block}\n"))
    with pytest.raises(ValueError, match=message):
        find_reader(config, "dev", Path("out"))


def test_code_of_ones_own(write, text, tmp_path) -> None:
    code = tmp_path / "code.py"
    code.write_text(
        'import spacy\nimport torch\n\n@spacy.registry.misc("own.Teacher.v1")\ndef own(size):\n'
        "    return lambda sentences: [torch.ones(len(words), size) for words in sentences]\n"
    )
    more = '\n[training.teacher]\n@misc = "own.Teacher.v1"\nsize = 3\n'
    path = write(readers(texts(text), texts(text)) + more, training__max_steps=8)
    assert "code not found" in fail("pretrain", path, tmp_path / "out", "--code", "gone.py")
    printed = succeed("pretrain", path, tmp_path / "out", "--code", code)
    assert "A teacher of 100% of the sentences" in printed


def test_words_of_docs_are_those_of_their_shards(tmp_path) -> None:
    vocab = spacy.blank("en").vocab
    words = ["One\nword", "or", "New York", "a\r", "\u2028", "."]
    DocBin(docs=[Doc(vocab, words=words)] * 9).to_disk(tmp_path / "a.spacy")
    read = list(Texts(tmp_path / "a.spacy", "en").sentences())
    out = tmp_path / "shards"
    succeed("tokenize", tmp_path / "a.spacy", out)
    assert read == list(Shards(out).sentences())
    assert read[0] == ["One", "word", "or", "New", "York", "a", "."]


# Settings

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
