"""What a config of pretraining names: corpus readers, a teacher, code of one's own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_elmo.pretraining.config import read_config
from spacy_elmo.pretraining.prepare import find_reader
from spacy_elmo.text.readers import Texts
from spacy_elmo.text.shards import Shards, write_meta
from spacy_elmo.weights.find import find_weights

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
