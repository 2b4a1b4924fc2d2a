"""Configs of pretraining as spaCy reads them, their corpus readers and loggers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spacy
from click.testing import Result
from spacy.tokens import Doc, DocBin
from typer.testing import CliRunner

from spacy_elmo.cli import app
from spacy_elmo.cli.pretrain_config import read_spacy_config
from spacy_elmo.pretraining.config import CONFIG, PretrainConfig, read_config
from spacy_elmo.pretraining.run.checkpoint import CHECKPOINT
from spacy_elmo.pretraining.run.log import read_log
from spacy_elmo.pretraining.run.prepare_run import find_reader
from spacy_elmo.text.readers import Texts, blank_pipeline
from spacy_elmo.text.shards import Shards
from spacy_elmo.util.files import write_json
from spacy_elmo.weights.find import find_weights
from spacy_elmo.weights.layout import Card

from ..pretraining.helpers import PROSE, config_text, make_config, same_weights

RECIPES = sorted((Path(__file__).parents[2] / "project" / "configs").glob("pretrain_*.cfg"))


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["pretrain", *map(str, arguments)])


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


def without_spacy(path: Path) -> PretrainConfig:
    """The config as JSON, read where there is no spaCy."""
    write_json(path.with_suffix(".json"), read_spacy_config(path).to_dict())
    return read_config(path.with_suffix(".json"))


def texts(path: Path) -> str:
    return f'@readers = "spacy-elmo.Texts.v1"\npaths = {json.dumps(str(path))}\n'


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_as_json_without_spacy(recipe: Path, tmp_path: Path) -> None:
    """The written config says the same, and gets the same overrides."""
    arguments = ["--paths.train", "a b", "--training.max_steps=30000"]
    assert run(recipe, tmp_path / "out", *arguments, "--config-only").exit_code == 0
    config = read_spacy_config(recipe, [*arguments, "--training.seed", "7"])
    assert config == read_config(tmp_path / "out" / CONFIG, {"training.seed": 7})
    assert (config.paths.train, config.training.seed) == ("a b", 7)


def test_blocks_are_written_and_read(write: Callable[..., Path], text: Path) -> None:
    more = readers(texts(text), texts(text), 'lang = "en"\n')
    path = write(more + '\n[training.logger]\n@loggers = "spacy.ConsoleLogger.v3"\n')
    config = read_spacy_config(path)
    assert config.training.logger == {"@loggers": "spacy.ConsoleLogger.v3"}
    write_json(path.with_suffix(".json"), config.to_dict())
    for read in (read_spacy_config, read_config):
        assert read(path.with_suffix(".json")) == config


def test_a_written_config_starts_a_run_and_does_not_touch_one(
    write: Callable[..., Path], text: Path, tmp_path: Path
) -> None:
    path, out = write(readers(texts(text), texts(text)), training__max_steps=8), tmp_path / "out"
    for _ in range(2):
        result = run(path, out, "--config-only")
        assert result.exit_code == 0, result.output
    assert [file.name for file in out.iterdir()] == [CONFIG]
    result = run(out / CONFIG, out)
    assert result.exit_code == 0, result.output
    before = (out / CONFIG).read_bytes()
    result = run(path, out, "--config-only", "--training.seed", 5)
    assert result.exit_code == 1
    assert "has the checkpoint of another run" in " ".join(result.output.split())
    assert (out / CONFIG).read_bytes() == before


def test_variables_and_the_environment(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write()
    changed = path.read_text().replace("max_size = 50000", "max_size = ${training.max_steps}")
    path.write_text(changed)
    monkeypatch.setenv("SPACY_CONFIG_OVERRIDES", "--training.max_steps 77 --training.seed 5")
    config = read_spacy_config(path, ["--training.seed", "6"])
    assert (config.vocab.max_size, config.training.seed) == (77, 6)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("[corpora]\n[corpora.test]\n@readers = 'x'\n", r"unknown block \[corpora\.test\]"),
        ("[corpora]\n[corpora.train]\npaths = 1\n", r"must be a block with @readers"),
        ('[corpora]\n[corpora.dev]\n@readers = "nothing.v1"\n', r"corpora\.dev.*nothing\.v1"),
        (
            '[corpora]\n[corpora.dev]\n@readers = "spacy.JsonlCorpus.v1"\npath = "x"\n',
            r"spacy\.JsonlCorpus\.v1.* does not read texts for pretraining",
        ),
        (
            '[corpora]\n[corpora.dev]\n@readers = "spacy-elmo.Texts.v1"\npath = "x"\n',
            r"(?s)corpora\.dev.*missing required argument: 'paths'",
        ),
        ("[speed]\n", r"unknown sections \['speed'\]"),
        ("[vocab]\n", "Cannot read the config"),
        ("[speed]\nx = ${a.b}\n", "Cannot read the config"),
    ],
)
def test_wrong_configs_are_refused(write: Callable[..., Path], more: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config = read_spacy_config(write("\n" + more))
        find_reader(config, "dev", print)


def test_raw_text_gives_what_its_shards_give(
    write: Callable[..., Path], text: Path, tmp_path: Path
) -> None:
    shards = tmp_path / "shards"
    assert CliRunner().invoke(app, ["tokenize", str(text), str(shards)]).exit_code == 0
    same = {"training__max_steps": 12, "training__seed": 3}
    result = run(write(readers(texts(text), texts(text)), **same), tmp_path / "raw")
    assert result.exit_code == 0, result.output
    of_shards = f'@readers = "spacy-elmo.Shards.v1"\npaths = "{shards}"\n'
    result = run(write(readers(of_shards, of_shards), **same), tmp_path / "read")
    assert result.exit_code == 0, result.output
    paths = ["--paths.train", shards, "--paths.dev", shards]
    assert run(write(**same), tmp_path / "paths", *paths).exit_code == 0
    for name in ("read", "paths"):
        weights = "model-last/weights.safetensors"
        assert same_weights(tmp_path / "raw" / weights, tmp_path / name / weights)
    assert find_weights(tmp_path / "raw" / "model-best").card().meta == {"lang": "en"}


def test_a_run_from_raw_text_is_resumed(
    write: Callable[..., Path], text: Path, tmp_path: Path
) -> None:
    path = write(readers(texts(text), texts(text)), training__max_steps=12)
    assert run(path, tmp_path / "whole").exit_code == 0
    assert run(path, tmp_path / "parts", "--training.max_steps", 8).exit_code == 0
    # The checkpoint of a shorter schedule: the rate of the last steps was another.
    result = run(tmp_path / "parts" / "pretrain.json", tmp_path / "parts", "--resume", "-q")
    assert result.exit_code == 0, result.output
    text.write_text(PROSE)
    result = run(path, tmp_path / "parts", "--resume")
    assert result.exit_code == 1
    assert "Cannot resume: the training text is not the one" in " ".join(result.output.split())


def test_without_spacy_readers_are_refused(write: Callable[..., Path], text: Path) -> None:
    from spacy_elmo.pretraining.train import pretrain

    config = without_spacy(write(readers(texts(text), texts(text))))
    with pytest.raises(ValueError, match=r"\[corpora\.train\] is .*, which only spaCy can load"):
        pretrain(config, text.parent / "out", quiet=True)
    assert not (text.parent / "out" / CHECKPOINT).exists()


def test_texts_of_all_forms(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    (tmp_path / "a.txt").write_text("One word. Two words.\n\nThree.\n")
    (tmp_path / "b.jsonl").write_text('{"text": "Four."}\n')
    DocBin(docs=[nlp("Five.")]).to_disk(tmp_path / "c.spacy")
    (tmp_path / "d.csv").write_text("Six.")
    source = Texts(str(tmp_path), "en")
    assert [file.name for file in source.files()] == ["a.txt", "b.jsonl", "c.spacy"]
    read = [" ".join(words) for words in source.sentences()]
    assert read == ["One word .", "Two words .", "Three .", "Four .", "Five ."]
    assert [f.name for f in Texts([tmp_path / "d.csv", tmp_path / "*.jsonl"], "en").files()] == [
        "d.csv", "b.jsonl",
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"No texts at '.*nowhere'"):
        Texts(tmp_path / "nowhere", "en").files()


def test_a_tokenizer_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("나는 집에 간다. 너는?\n", encoding="utf-8")
    source = Texts(tmp_path / "a.txt", "ko", "spacy.Tokenizer.v1")
    assert [" ".join(words) for words in source.sentences()] == ["나는 집에 간다 .", "너는 ?"]
    assert source.card() == {"lang": "ko", "tokenizer": "spacy.Tokenizer.v1"}
    with pytest.raises(ValueError, match=r"nothing\.v1"):
        list(Texts(tmp_path / "a.txt", "ko", "nothing.v1").sentences())
    with pytest.raises(ValueError, match="E048"):
        list(Texts(tmp_path / "a.txt", "qqq").sentences())


def test_a_registered_logger_sees_the_run(
    write: Callable[..., Path], text: Path, tmp_path: Path
) -> None:
    seen: list[Any] = []
    finished: list[bool] = []

    @spacy.registry.loggers("tests.Seen.v1")
    def make() -> Any:
        def setup(nlp: Any, stdout: Any, stderr: Any) -> Any:
            assert nlp.config.interpolate()["training"]["max_steps"] == 12
            return seen.append, lambda: finished.append(True)

        return setup

    more = readers(texts(text), texts(text)) + '\n[training.logger]\n@loggers = "tests.Seen.v1"\n'
    result = run(
        write(more, training__max_steps=12, training__eval_every=5), tmp_path / "out", "-q"
    )
    assert (result.exit_code, result.output, finished) == (0, "", [True])
    evaluations = [info for info in seen if info is not None]
    assert [info["step"] for info in evaluations] == [5, 10, 12]
    assert len(seen) == 12  # each step, as in `spacy train`
    assert [i for i, info in enumerate(seen, 1) if info is not None] == [5, 10, 12]
    logged = [e for e in read_log(tmp_path / "out" / "log.jsonl") if "mean" in e][:3]
    assert [-info["score"] for info in evaluations] == [e["mean"] for e in logged]
    assert all(info["losses"]["bilm"] > 0 for info in evaluations)
    assert evaluations[-1]["words"] == logged[-1]["words"]


def test_loggers_of_spacy_itself(write: Callable[..., Path], text: Path, tmp_path: Path) -> None:
    more = (
        readers(texts(text), texts(text))
        + '\n[training.logger]\n@loggers = "spacy.ConsoleLogger.v3"\nprogress_bar = "train"\n'
        + f"output_file = {json.dumps(str(tmp_path / 'seen.jsonl'))}\n"
    )
    result = run(write(more, training__max_steps=12, training__eval_every=5), tmp_path / "out")
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "seen.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [5, 10, 12]


def test_code_of_ones_own(write: Callable[..., Path], text: Path, tmp_path: Path) -> None:
    code = tmp_path / "code.py"
    code.write_text(
        'import spacy\nimport torch\n\n@spacy.registry.misc("own.Teacher.v1")\ndef own(size):\n'
        "    return lambda sentences: [torch.ones(len(words), size) for words in sentences]\n"
    )
    more = '\n[training.teacher]\n@misc = "own.Teacher.v1"\nsize = 3\n'
    path = write(readers(texts(text), texts(text)) + more, training__max_steps=8)
    assert "no such file" in run(path, tmp_path / "out", "--code", "gone.py").output.lower()
    result = run(path, tmp_path / "out", "--code", code)
    assert result.exit_code == 0, result.output
    assert "a teacher of 100% of the sentences" in result.output


def test_settings_that_would_be_ignored_are_refused(
    write: Callable[..., Path], text: Path, tmp_path: Path
) -> None:
    from spacy_elmo.pretraining.train import pretrain

    path = write(readers(texts(text), texts(text)))
    for arguments, message in [
        (["--paths.train", "x"], r"both \[corpora\.train\] and \[paths\] train are set"),
        (
            ["--paths.train.x", "3"],
            r"^Config: 'train' of \[paths\.train\] is a setting, not a section",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            read_spacy_config(path, arguments)
    logger = '\n[training.logger]\n@loggers = "spacy.ConsoleLogger.v3"\n'
    config = without_spacy(write(logger, paths__train=str(text), paths__dev=str(text)))
    with pytest.raises(ValueError, match=r"\[training\.logger\] is .*, which only spaCy can load"):
        pretrain(config, tmp_path / "out", quiet=True)


def test_a_reader_that_has_changed_reads_another_text(
    write: Callable[..., Path], text: Path, tmp_path: Path
) -> None:
    one = write(readers(texts(text), texts(text)), training__max_steps=8)
    assert run(one, tmp_path / "out").exit_code == 0
    of_shards = f'@readers = "spacy-elmo.Shards.v1"\npaths = "{text}"\n'
    for other in (texts(text) + 'lang = "fr"\n', of_shards):
        path = write(readers(other, texts(text)), training__max_steps=12)
        result = run(path, tmp_path / "out", "--resume")
        assert result.exit_code == 1
        assert "the training text is not the one" in " ".join(result.output.split())


def test_words_of_docs_are_those_of_their_shards(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    vocab = spacy.blank("en").vocab
    words = ["One\nword", "or", "New York", "a\r", "\u2028", "."]
    DocBin(docs=[Doc(vocab, words=words)] * 9).to_disk(tmp_path / "a.spacy")
    read = list(Texts(tmp_path / "a.spacy", "en").sentences())
    out = tmp_path / "shards"
    assert CliRunner().invoke(app, ["tokenize", str(tmp_path / "a.spacy"), str(out)]).exit_code == 0
    assert read == list(Shards(out).sentences())
    assert read[0] == ["One", "word", "or", "New", "York", "a", "."]
    source = texts(tmp_path / "a.spacy")
    result = run(write(readers(source, source), training__max_steps=8), tmp_path / "out")
    assert result.exit_code == 0, result.output


def test_the_vocab_forgets_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for its first words, of which there are enough already."""
    monkeypatch.setattr("spacy_elmo.text.split_text.KEPT_WORDS", 0)
    (tmp_path / "a.txt").write_text("\n".join(f"word{i} other{i}" for i in range(1000)))
    source = Texts(tmp_path / "a.txt", "en")
    list(source.sentences())
    n_strings = len(source.nlp.vocab.strings)
    (tmp_path / "a.txt").write_text("\n".join(f"new{i} text{i}" for i in range(1000)))
    assert len(list(source.sentences())) == 1000
    assert len(source.nlp.vocab.strings) < n_strings + 100


def test_a_logger_follows_a_resumed_run(
    write: Callable[..., Path], text: Path, tmp_path: Path
) -> None:
    seen: list[Any] = []

    @spacy.registry.loggers("tests.Resumed.v1")
    def make() -> Any:
        return lambda nlp, stdout, stderr: (seen.append, lambda: None)

    more = (
        readers(texts(text), texts(text)) + '\n[training.logger]\n@loggers = "tests.Resumed.v1"\n'
    )
    changes = {"training__eval_every": 5, "training__log_every": 7}
    out = tmp_path / "out"
    assert run(write(more, training__max_steps=8, **changes), out, "-q").exit_code == 0
    seen.clear()
    assert run(write(more, training__max_steps=12, **changes), out, "-q", "--resume").exit_code == 0
    assert [None if info is None else info["step"] for info in seen] == [None, 10, None, 12]
    first = seen[1]
    assert first["losses"]["bilm"] > 0  # the last that is known
    assert [step for _, step in first["checkpoints"]] == [5, 8, 10]


def test_a_logger_that_fails_leaves_nothing_behind(
    write: Callable[..., Path], text: Path, tmp_path: Path
) -> None:
    more = readers(texts(text), texts(text))
    more += '\n[training.logger]\n@loggers = "spacy.ConsoleLogger.v3"\nprogress_bar = "bogus"\n'
    result = run(write(more), tmp_path / "out")
    assert result.exit_code == 1
    assert "bogus" in result.output
    assert not (tmp_path / "out").exists()


def test_the_tokenizer_of_the_weights_is_taken_for_their_language() -> None:
    class Korean:
        where = "somewhere"

        def card(self) -> Card:
            return Card({"lang": "ko", "tokenizer": "spacy.Tokenizer.v1"})

    for lang in (None, "ko"):
        nlp = blank_pipeline(Korean(), lang)  # type: ignore[arg-type]
        assert [token.text for token in nlp("너는?")] == ["너는", "?"]
    assert blank_pipeline(Korean(), "en").lang == "en"  # type: ignore[arg-type]
