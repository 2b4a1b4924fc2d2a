"""What trains components, at its smallest: downstream, adapted, recipes and others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import spacy
from arms import ARMS, make_nlp
from downstream import DROPOUT
from spacy.util import dict_to_dot, load_config
from tables import LANGUAGE_ARMS
from tasks import TASKS

from ..pretraining.helpers import PROSE
from .conftest import Run, pack

pytestmark = pytest.mark.slow  # components are trained

MIX, BOTH = "ELMo, mix (λ = 0.001)", "ELMo, input and output"
PROJECT = Path(__file__).parents[2] / "project"
MEASURED = [  # recipe, component, arm, what the two do not share
    ("tagger_parser", "tagger", BOTH, {"segments"}),
    ("tagger_parser", "parser", BOTH, {"segments"}),
    ("ner", "ner", MIX, set()),
    ("textcat", "textcat", "ELMo, TextCatLinear", set()),
    ("static_vectors", "ner", "ELMo, mix and static vectors", {"embed"}),
    ("input_output", "ner", BOTH, {"encode"}),
    ("finetuning", "ner", "ELMo, fine-tuned", {"learn_rate"}),
]


@pytest.fixture(scope="module")
def files(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What the arms need; the pretrained weights are made by `test_results`."""
    embedded = tmp_path_factory.mktemp("embedded")
    sentences = [["She", "sang", "."], ["Dogs", "bark", "at", "me"]]
    (embedded / "sentences.json").write_text(json.dumps(sentences), encoding="utf8")
    rng = np.random.default_rng(0)
    np.save(embedded / "minilm.npy", rng.normal(size=(2, 7, 12)).astype("float16"))
    nlp = spacy.blank("en")
    for word in ("She", "Dogs"):
        nlp.vocab.set_vector(word, rng.normal(size=8).astype("float32"))
    nlp.to_disk(embedded / "vectors")
    return {
        "embedded": embedded,
        "pretrained": embedded / "tok2vec.bin",
        "static": embedded / "vectors",
    }


def test_results(run: Run, data: Path, files: dict[str, Path], tmp_path: Path) -> None:
    """Of some arms, each measured once."""
    text = data / "lm" / "masc" / "train.txt.xz"
    run("pretrained", files["pretrained"], text, "--seconds", 0.1)
    out = tmp_path / "out.jsonl"
    chosen = ("HashEmbedCNN, pretrained", "static vectors", "MiniLM-L6", MIX, BOTH)
    few = [out, "--data", data, "--tasks", "tagger", "--seeds", 0, "--max-steps", 1]
    few += [part for name, path in files.items() for part in (f"--{name}", path)]
    first = run("downstream", *few, "--arms", *chosen)
    results = [json.loads(line) for line in out.read_text("utf8").splitlines()]
    assert {result["unit"]["arm"] for result in results} == set(chosen)
    assert run("downstream", *few, "--arms", *chosen) == first


@pytest.mark.parametrize(("recipe", "component", "arm", "differences"), MEASURED)
def test_what_is_measured_is_a_recipe(
    files: dict[str, Path], recipe: str, component: str, arm: str, differences: set[str]
) -> None:
    """The model, the biLM's settings, the learning rate and dropout."""
    nlp = make_nlp(TASKS[component], ARMS[arm], files)
    config = load_config(PROJECT / "configs" / f"{recipe}.cfg", interpolate=True)
    mine, theirs = (
        dict_to_dot({"elmo": each["elmo"]["model"], component: each[component]})
        for each in (nlp.config["components"], config["components"])
    )
    mine |= {"learn_rate": ARMS[arm].learn_rate, "dropout": DROPOUT}
    training = config["training"]
    theirs |= {"learn_rate": training["optimizer"]["learn_rate"], "dropout": training["dropout"]}
    parts = [name.split(".") for name in mine | theirs if mine.get(name) != theirs.get(name)]
    found = {each[each.index("tok2vec") + 1] if "tok2vec" in each else each[-1] for each in parts}
    assert found == differences


def test_adapted(run: Run, data: Path, tmp_path: Path) -> None:
    """The biLM of a task's own text is what the arm learns from."""
    adapted = tmp_path / "adapted"
    run("adapted", adapted, "--data", data, "--tasks", "ner")
    options = ("--data", data, "--tasks", "ner", "--arms", "ELMo, adapted", "--seeds", 0)
    out = run("downstream", tmp_path / "out", *options, "--max-steps", 1, "--adapted", adapted)
    assert out.startswith("ner all ELMo, adapted 0 ")


def test_entities(run: Run, data: Path, tmp_path: Path) -> None:
    few = (tmp_path / "out.jsonl", "--data", data, "--seeds", 0, "--steps", 1, 60)
    out = run("entities", *few)
    assert all(f"{name}, 1 steps, last: " in out for name in ("recipe", "beam", "BiLSTM"))
    assert "recipe, 60 steps, last: 100.0" in out
    assert run("entities", *few) == out  # all are there


def test_recipes(run: Run, data: Path, tmp_path: Path) -> None:
    """Each recipe learns, is kept and timed; a swap of weights for themselves changes nothing."""
    out, kept = tmp_path / "out.jsonl", tmp_path / "kept"
    given = (out, "--data", data, "--tasks", "English, 100", "--seeds", 0)
    given += ("--arms", "without", "elmo_add", "light")
    few = (*given, "--steps", 2, "--save", kept, "--swap", "en_sm")
    printed = run("recipes", *few)
    records = [json.loads(line) for line in out.read_text("utf8").splitlines()]
    assert [r["found"]["swapped"]["differ"] for r in records if "swapped" in r["found"]] == [0, 0]
    assert run("recipes", *few) == printed  # all are there
    timed = run("recipes", *given, "--times", kept, "--runs", 1).splitlines()
    assert any(line.startswith("| … µs a word | ") for line in timed)


@pytest.mark.timeout(1800)
def test_languages(data: Path, tmp_path: Path, run: Run) -> None:
    """What an hour gains in each language, in a run of few steps."""
    for name in ("novels.train", "novels.valid", "modern.train"):
        pack(data / "languages" / "de" / f"{name}.txt.xz", f"{PROSE}\n" * 60)
    given = ["--data", data, "--langs", "de", "--texts", "novels", "--size", "tiny"]
    given += ["--minutes", 0.05, "--steps", 3]
    run("languages", tmp_path, *given)
    lines = (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["unit"]["arm"] for line in lines] == list(LANGUAGE_ARMS)
    assert all(
        set(json.loads(line)["found"]["scores"]) == {"tagger", "parser", "ner"} for line in lines
    )
    run("languages", tmp_path, *given)
    assert (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines() == lines
    printed = run("unseen", tmp_path / "de-novels-0.05").splitlines()
    assert [line.partition(":")[0] for line in printed] == ["nothing"] * 2 + ["ELMo"] * 2
