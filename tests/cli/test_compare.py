"""``python -m spacy elmo compare``, at its smallest."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.cli.init_config import init_config
from spacy.cli.train import train
from spacy.tokens import DocBin
from spacy.training.corpus import Corpus
from spacy.vocab import Vocab

from spacy_elmo import add_elmo
from spacy_elmo.compare import training

from ..pipeline.helpers import write_weights
from ..project.sentences import annotated_docs
from .helpers import fail, joined, run, succeed

PIPES = ["tagger", "parser", "ner", "textcat"]
TAGGER = ("--nlp.pipeline", '["tok2vec", "tagger"]')  # alone, which is quicker


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    config = init_config(lang="xx", pipeline=PIPES)
    small = {"width": 8, "depth": 1, "rows": [50, 50, 50, 50]}
    for part in ("embed", "encode"):
        block = config["components"]["tok2vec"]["model"][part]
        block |= {name: value for name, value in small.items() if name in block}
    config["components"]["parser"]["min_action_freq"] = 1
    config["training"] |= {"max_steps": 6, "eval_frequency": 3}
    config.to_disk(folder / "base.cfg")
    docs = list(annotated_docs(Vocab()))
    DocBin(docs=docs).to_disk(folder / "train.spacy")
    DocBin(docs=docs[::3]).to_disk(folder / "dev.spacy")
    write_weights(folder / "weights")
    return folder


@pytest.fixture
def given(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Arguments of a comparison in this folder."""
    monkeypatch.chdir(folder)
    shutil.rmtree(folder / "comparison", ignore_errors=True)
    data = ["--paths.train", "train.spacy", "--paths.dev", "dev.spacy"]
    return ["compare", "base.cfg", *data, "-w", "weights", "--seeds", "2"]


@pytest.mark.filterwarnings("ignore")
def test_what_is_printed_and_kept(given: list[str], folder: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run(*given, "-o", "scores.svg")
    assert result.exit_code == 0, result.output
    printed = joined(result.stdout)
    for score in ("tag_acc", "dep_las", "ents_f", "cats_score"):
        assert re.search(rf"dev {score} +\d+\.\d\d +\d+\.\d\d +[+-]\d+\.\d\d +[+-]\d", printed)
        assert f">{score}</text>" in (folder / "scores.svg").read_text("utf-8")
    for kind in ("tags", "arcs", "entities", "texts"):
        assert re.search(rf"ELMo mends \d+ dev {kind} \(by every seed\)", printed)
    assert re.search(
        r"ELMo (helps|harms|helps and harms|does not help) here: (it|the interval of) .* \(dev\)\.",
        printed,
    )
    assert "steps" not in result.stdout
    # What is kept are the pipelines of spaCy's own command.
    kept = sorted(path for path in (folder / "comparison").iterdir())
    assert [path.name.rpartition("-")[0] for path in kept] == [
        "weights-all-0", "weights-all-1", "without-all-0", "without-all-1"
    ]  # fmt: skip
    config = kept[1] / "model-best" / "config.cfg"
    output = folder / "trained"
    train(config, output)
    same = spacy.load(output / "model-best")
    examples = list(Corpus(folder / "dev.spacy")(same))
    found = json.loads((kept[1] / "result.json").read_text("utf-8"))["scores"]
    assert found == {name: pytest.approx(same.evaluate(examples)[name]) for name in found}


def get_json(*arguments: Any) -> Any:
    result = run(*arguments, "--json", "-q")
    assert result.exit_code == 0 and result.stderr == "", result.output
    return json.loads(result.stdout)


@pytest.mark.filterwarnings("ignore")
def test_a_run_that_was_stopped_goes_on(
    given: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[str] = []
    original = training.train

    def stop(nlp: Any, *args: Any, **kwargs: Any) -> Any:
        trained.append(nlp.config["training"]["seed"])
        if len(trained) == 3:
            raise KeyboardInterrupt
        return original(nlp, *args, **kwargs)

    monkeypatch.setattr(training, "train", stop)
    given += TAGGER
    result = run(*given, "-q")
    assert result.exit_code == 130 and "goes on from here" in result.output
    assert len(list((folder / "comparison").iterdir())) == 2
    first = get_json(*given)
    assert trained == [0, 0, 1, 1, 1]
    [found] = first["comparisons"]
    assert found["weights"] == "weights" and found["docs"] is None
    assert get_json(*given) == first and len(trained) == 5
    # Another setting is another training.
    get_json(*given, "--training.max_steps", "5", "--seeds", "1")
    assert len(trained) == 7


@pytest.mark.filterwarnings("ignore")
def test_sizes_and_several_bilms(given: list[str], folder: Path) -> None:
    write_weights(folder / "others", seed=1)
    options = "--sizes 20,all -w others --seeds 1 --training.max_steps 3"
    more = (*TAGGER, *options.split())
    found = get_json(*given, *more)["comparisons"]
    assert [(each["docs"], each["weights"]) for each in found] == [
        (20, "weights"), (20, "others"), (30, "weights"), (30, "others")
    ]  # fmt: skip
    for each in found:
        for score in each["scores"].values():
            low, high = score["interval"]
            assert score["difference"] == pytest.approx(score["with"] - score["without"])
            assert low <= high
    assert len(list(Corpus(folder / "comparison" / "train-20-0.spacy")(spacy.blank("xx")))) == 20
    pytest.importorskip("matplotlib")
    succeed(*given, *more, "-o", "curves.svg")
    svg = (folder / "curves.svg").read_text("utf-8")
    assert svg.count(">others</text>") == 1 and ">training Docs</text>" in svg


def test_one_error(given: list[str], folder: Path) -> None:
    base = spacy.util.load_config(folder / "base.cfg")
    add_elmo(base, weights=folder / "weights").to_disk(folder / "elmo.cfg")
    base["components"] |= {name: {"factory": "sentencizer"} for name in PIPES}
    base.to_disk(folder / "nothing.cfg")
    _, _, *data = given
    assert "The config has ELMo already" in fail("compare", "elmo.cfg", *data)
    assert "No component can learn from ELMo" in fail("compare", "nothing.cfg", *data)
    assert "no dev set at 'gone'" in fail(*given, "--paths.dev", "gone")
    assert "has 31, but there are 30 training Docs" in fail(*given, "--sizes", "20,31")
    few = ("--training.max_steps", "6", "--training.eval_frequency", "7")
    assert "max_steps is 6, below eval_frequency, 7" in fail(*given, *few)
    assert not (folder / "comparison").exists()
    docs = list(DocBin().from_disk(folder / "train.spacy").get_docs(Vocab()))
    for doc in docs:
        doc.ents = ()
    DocBin(docs=docs).to_disk(folder / "no-names.spacy")
    said = fail(*given, "--paths.train", "no-names.spacy")
    assert "no labels for the component 'ner'" in said
