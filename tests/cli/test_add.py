"""``python -m spacy elmo add``."""

from __future__ import annotations

from pathlib import Path

import pytest
import spacy
from spacy.cli.init_config import init_config
from spacy.util import load_config

from . import helpers


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("add") / "plain.cfg"
    init_config(lang="en", pipeline=["tagger", "ner"], optimize="accuracy").to_disk(path)
    return path


def run(*arguments: object, stdin: str = "") -> tuple[int, str, str]:
    result = helpers.run("add", *arguments, input=stdin)
    return result.exit_code, result.stdout, result.stderr


def test_from_one_file_to_another(plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "config.cfg"
    code, stdout, _ = run(plain, out, "--fine-tune", "--paths.vectors", "null")
    assert code == 0
    assert "tagger: reads ELMo, by spacy-elmo.Tok2Vec.v1" in stdout
    assert f"spacy train {out}" in stdout
    config = load_config(out)
    assert config["nlp"]["pipeline"] == ["elmo", "tok2vec", "tagger", "ner"]
    assert config["paths"]["vectors"] is None
    assert not config["components"]["elmo"]["model"]["frozen"]
    assert run(plain, out)[0] == 1
    assert run(out, out, "--force")[1].count("ELMo is there already")
    assert load_config(out) == config


def test_through_pipes(plain: Path) -> None:
    """Nothing but the config on the standard output."""
    code, stdout, stderr = run("-", "-", "--light", stdin=plain.read_text(encoding="utf-8"))
    assert code == 0 and "Added ELMo" in stderr
    config = spacy.util.load_config_from_str(stdout)
    listener = config["components"]["ner"]["model"]["tok2vec"]
    assert listener["@architectures"] == "spacy-elmo.ElmoListener.v1"


def test_directory_of_a_pipeline(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("senter")
    nlp.initialize()
    nlp.to_disk(tmp_path / "pipeline")
    code, stdout, _ = run(tmp_path / "pipeline")
    assert code == 0 and 'pipeline = ["elmo", "senter"]' in stdout


def test_what_is_no_config(tmp_path: Path) -> None:
    path = tmp_path / "config.cfg"
    path.write_text("[nlp]\n[nlp]\n")
    code, stdout, stderr = run(path)
    assert (code, stdout) == (1, "")
    assert "Cannot add ELMo" in stderr and "Cannot read the config" in stderr


def test_nothing_is_said_to_be_added_that_cannot_be_written(plain: Path) -> None:
    code, stdout, stderr = run(plain, plain / "x.cfg")
    assert code == 1 and "Cannot add ELMo" in stderr
    assert "Added ELMo" not in stdout + stderr


def test_code_of_ones_own_and_the_command_that_trains(tmp_path: Path) -> None:
    code_file, config, out = (
        tmp_path / name for name in ("my code.py", "config.cfg", "my new.cfg")
    )
    code_file.write_text(
        'import spacy\n\n@spacy.registry.architectures("own.Tok2Vec.v1")\ndef own():\n'
        '    return spacy.registry.architectures.get("spacy.HashEmbedCNN.v2")(\n'
        "        width=8, depth=1, embed_size=50, window_size=1, maxout_pieces=2,\n"
        "        subword_features=False, pretrained_vectors=None)\n"
    )
    config.write_text(
        '[nlp]\nlang = "en"\npipeline = ["tagger"]\n\n[components]\n\n[components.tagger]\n'
        'factory = "tagger"\n\n[components.tagger.model]\n@architectures = "spacy.Tagger.v2"\n\n'
        '[components.tagger.model.tok2vec]\n@architectures = "own.Tok2Vec.v1"\n'
    )
    code, stdout, _ = run(config, out, "--code", code_file)
    assert code == 0 and "own.Tok2Vec.v1" in out.read_text(encoding="utf-8")
    assert f"spacy train '{out}'" in stdout and f"--code '{code_file}'" in stdout
