"""spaCy's vectors, from `spacy init vectors` to a pipeline with a biLM on top of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from click.testing import Result
from spacy.cli._util import app as spacy_app
from spacy.strings import StringStore
from spacy.vectors import Vectors
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  # adds its commands to spaCy's
from spacy_elmo.pretraining.word_table import read_vectors
from spacy_elmo.weights.find import load_bilm

from ..pretraining.helpers import PROSE, config_text, make_config

WORDS = ["the", "The", "bank", "river", "boats", "Größe", "a_b", ".", ","]


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(spacy_app, list(map(str, arguments)), env={"COLUMNS": "200"})


def said_by(result: Result) -> str:
    """Without the line breaks that fit it to a terminal."""
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def numbers() -> np.ndarray:
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 6))
    return vectors.round(3).astype(np.float32)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, numbers: np.ndarray) -> Path:
    """Vectors as word2vec writes them."""
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    lines = [f"{w} {' '.join(map(str, row))}\n" for w, row in zip(WORDS, numbers, strict=True)]
    path.write_text(f"{len(WORDS)} 6\n{''.join(lines)}", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def vectors(text: Path) -> Path:
    result = run("init", "vectors", "en", text, text.parent / "made")
    assert result.exit_code == 0, result.output
    return text.parent / "made"


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    text = tmp_path / "text.txt"
    text.write_text(PROSE.replace("\n", "\n\n") * 3, encoding="utf-8")
    result = run("elmo", "tokenize", text, tmp_path / "shards")
    assert result.exit_code == 0, result.output
    return tmp_path / "shards"


# Reading them


def silent(text: str) -> None:
    raise AssertionError(text)


def test_words_and_vectors(vectors: Path, numbers: np.ndarray) -> None:
    table = read_vectors(vectors, silent)
    assert set(table.words) == set(WORDS)
    for word, row in zip(table.words, table.rows, strict=True):
        assert (table.vectors[row] == numbers[WORDS.index(word)]).all()


def test_words_that_share_a_vector(text: Path, tmp_path: Path) -> None:
    made = run("init", "vectors", "en", text, tmp_path / "made", "--prune", 4)
    assert made.exit_code == 0, made.output
    table, vocab = read_vectors(tmp_path / "made", silent), spacy.load(tmp_path / "made").vocab
    assert (len(table.words), len(table.vectors)) == (len(WORDS), 4)
    for word, row in zip(table.words, table.rows, strict=True):
        assert (table.vectors[row] == vocab[word].vector).all()


def test_a_whole_pipeline_with_odd_words(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger").add_label("X")
    nlp.initialize()
    words = ["a b\n", "\u2028", "\x00", " ", "NOUN", "ORTH", "🎉"]
    for number, word in enumerate(words):
        nlp.vocab.set_vector(word, np.full(2, number + 1, dtype=np.float32))
    nlp.to_disk(tmp_path / "whole")
    table = read_vectors(tmp_path / "whole", silent)
    found = {w: table.vectors[row, 0] for w, row in zip(table.words, table.rows, strict=True)}
    assert found == {word: number + 1 for number, word in enumerate(words)}
    assert len(table.vectors) == len(words)  # spaCy keeps free rows for more


def test_vectors_whose_words_are_not_there(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    strings = StringStore(["known"])
    nlp.vocab.vectors = Vectors(
        data=np.eye(2, dtype=np.float32), keys=["known", "lost"], strings=strings
    )
    nlp.vocab.strings.add("known")
    nlp.to_disk(tmp_path / "nlp")
    said: list[str] = []
    table = read_vectors(tmp_path / "nlp", said.append)
    assert (table.words, table.vectors.tolist()) == (["known"], [[1.0, 0.0]])
    assert "1 rows are left out, because the pipeline's strings lack" in said[0]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "empty")
    floret = spacy.blank("en")
    floret.vocab.vectors = Vectors(
        mode="floret", data=np.ones((4, 2), dtype=np.float32), minn=1, maxn=3, hash_count=1
    )
    floret.to_disk(tmp_path / "floret")
    for name, said in [
        ("no_such_pipeline", "Can't find model 'no_such_pipeline'"),
        (tmp_path, "cannot be read"),
        (tmp_path / "empty", "are empty"),
        (tmp_path / "floret", "'floret', which has no row per word"),
    ]:
        with pytest.raises(ValueError) as error:
            read_vectors(name, silent)
        assert said in str(error.value)
        assert f"'{name}' ([paths] vectors)" in str(error.value)


# From a text to a pipeline


@pytest.fixture
def config(tmp_path: Path) -> Path:
    text = config_text(make_config(changes={"training.max_steps": 12}))
    model = text[text.index("[model]") : text.index("[paths]")]
    shape = 'token_encoder = "vectors"\nprojection_dim = 8\ndim = 16\nn_layers = 2\n'
    path = tmp_path / "config.cfg"
    path.write_text(text.replace(model, f"[model]\n{shape}\n"), encoding="utf-8")
    return path


def test_the_whole_way(
    config: Path, shards: Path, vectors: Path, tmp_path: Path, numbers: np.ndarray
) -> None:
    pytest.importorskip("h5py")
    out = tmp_path / "out"
    paths = ["--paths.train", shards, "--paths.dev", shards]
    result = run("elmo", "pretrain", config, out, *paths, "--paths.vectors", vectors)
    assert result.exit_code == 0, result.output
    longer = ["--training.max_steps", 14, "--resume", "--paths.vectors", "gone"]
    result = run("elmo", "pretrain", config, out, *paths, *longer)
    assert result.exit_code == 0, result.output
    result = run(
        "elmo", "pretrain", config, tmp_path / "next", *paths, "--from", out / "model-last"
    )
    assert result.exit_code == 0, result.output

    best = out / "model-best"
    info = json.loads(run("elmo", "info", best, "--json").output)
    assert info["architecture"]["token_encoder"] == "vectors"
    assert info["architecture"]["n_words"] == len(WORDS)
    assert "filters" not in info["architecture"]
    n_numbers = (len(WORDS) + 3) * 6 + 6 * 8 + 8
    assert info["parameters"]["word_vectors"] == n_numbers
    assert "word vectors" in run("elmo", "info", best).output
    assert run("elmo", "perplexity", best, tmp_path / "text.txt").exit_code == 0
    assert run("elmo", "predict", "The ___ is closed .", "--weights", best).exit_code == 0

    result = run("elmo", "convert", best, tmp_path / "published", "--to", "published")
    assert result.exit_code == 1
    assert "token_encoder = 'vectors', which no other implementation reads" in said_by(result)
    assert not (tmp_path / "published").exists()
    result = run("elmo", "convert", best, tmp_path / "converted", "--to", "native", "--lang", "en")
    assert result.exit_code == 0, result.output
    for copy in (tmp_path / "converted", tmp_path / "next" / "model-last"):
        table = load_bilm(copy).word_vectors.contents()
        assert set(table.words) == set(WORDS)
        assert (table.vectors[table.rows[table.words.index("bank")]] == numbers[2]).all()


def test_failures(config: Path, shards: Path, vectors: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    paths = ["--paths.train", shards, "--paths.dev", shards]
    for arguments, said in [
        ([], "[paths] vectors is not set"),
        (["--paths.vectors", "en_core_web_xxl"], "Can't find model 'en_core_web_xxl'"),
        (["--paths.vectors", vectors, "--model.char_dim", 4], "['char_dim'] are not for"),
        (["--paths.vectors", vectors, "--model.n_words", 4], "[model] n_words is 4, but the word"),
    ]:
        result = run("elmo", "pretrain", config, out, *paths, *arguments)
        assert result.exit_code == 1
        assert said in said_by(result)
        assert not out.exists()
