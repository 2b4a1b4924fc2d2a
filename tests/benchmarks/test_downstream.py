"""What trains components, at its smallest: downstream, adapted, recipes and others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import spacy
from arms import ARMS, NEEDED, SETTINGS, fits, make_nlp
from downstream import DROPOUT
from spacy.util import load_config
from tasks import FEW, TASKS

from .conftest import Run

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
    for name, shape in (("minilm", (2, 7, 12)), ("en_core_web_sm", (1, 7, 8))):
        np.save(embedded / f"{name}.npy", rng.normal(size=shape).astype("float16"))
    nlp = spacy.blank("en")
    for word in ("She", "Dogs"):
        nlp.vocab.set_vector(word, rng.normal(size=8).astype("float32"))
    nlp.to_disk(embedded / "vectors")
    return {
        "embedded": embedded,
        "pretrained": embedded / "tok2vec.bin",
        "static": embedded / "vectors",
    }


def options(files: dict[str, Path]) -> list[object]:
    return [part for name, path in files.items() for part in (f"--{name}", path)]


def test_results(run: Run, data: Path, files: dict[str, Path], tmp_path: Path) -> None:
    """Of some arms."""
    text = data / "lm" / "masc" / "train.txt.xz"
    run("pretrained", files["pretrained"], text, "--seconds", 0.1)
    out = tmp_path / "out.jsonl"
    chosen = [
        "HashEmbedCNN, pretrained",
        "static vectors",
        "MiniLM-L6",
        MIX,
        "ELMo, input and output",
    ]
    few = ("--data", data, "--tasks", "tagger", "--seeds", 0, "--max-steps", 1, *options(files))
    every = ("--sizes", "all", "--arms", *chosen)
    first = run("downstream", out, *few, *every, "ELMo, adapted")
    run("downstream", out, *few, "--sizes", "50%", "--arms", MIX)
    results = [json.loads(line) for line in out.read_text("utf8").splitlines()]
    assert len(results) == len(chosen) + 1
    by_arm = {result["unit"]["arm"]: result["found"]["mixes"] for result in results}
    without = {result["unit"]["arm"] for result in results if result["weights"] is None}
    assert without == set(chosen[:3])  # which do not depend on the biLM
    assert by_arm["HashEmbedCNN, pretrained"] == []
    assert [len(mix[2]) for mix in by_arm["MiniLM-L6"]] == [2]  # layers
    assert {mix[1] for mix in by_arm["ELMo, input and output"]} == {"elmo", "output_elmo"}
    assert run("downstream", out, *few, *every) == first  # all are there
    run("downstream", out, *few, "--split", "dev", "--sizes", "all", "--arms", MIX)
    *_, last = out.read_text("utf8").splitlines()
    assert json.loads(last)["unit"]["split"] == "dev"  # another result


@pytest.mark.parametrize("arm", [*ARMS, *SETTINGS])
def test_every_arm(files: dict[str, Path], arm: str) -> None:
    """Their configs are valid."""
    chosen = ARMS.get(arm) or SETTINGS[arm]
    task = "tagger" if fits(TASKS["tagger"], chosen) else "textcat"
    nlp = make_nlp(TASKS[task], chosen, {**files, "adapted": Path("my_weights")})
    assert nlp.pipe_names == ["elmo"] * (chosen.elmo is not None) + [task]
    assert {arm.needs for arm in ARMS.values()} == {"", *NEEDED}


@pytest.mark.parametrize(("recipe", "component", "arm", "differences"), MEASURED)
def test_what_is_measured_is_a_recipe(
    files: dict[str, Path], recipe: str, component: str, arm: str, differences: set[str]
) -> None:
    """The model, the biLM's settings, the learning rate and dropout."""
    nlp = make_nlp(TASKS[component], ARMS[arm], files)
    config = load_config(PROJECT / "configs" / f"{recipe}.cfg", interpolate=True)
    mine, theirs = nlp.config["components"], config["components"]
    found = {
        name: mine[component]["model"]["tok2vec"][name]
        == theirs[component]["model"]["tok2vec"][name]
        for name in mine[component]["model"]["tok2vec"]
    }
    for model in (mine[component]["model"], theirs[component]["model"]):
        del model["tok2vec"]
    segments = [each["elmo"]["model"].pop("segments") for each in (mine, theirs)]
    found |= {
        "segments": segments[0] == segments[1],
        "model": mine[component] == theirs[component],
        "elmo": mine["elmo"]["model"] == theirs["elmo"]["model"],
        "learn_rate": ARMS[arm].learn_rate == config["training"]["optimizer"]["learn_rate"],
        "dropout": config["training"]["dropout"] == DROPOUT,
    }
    assert {name for name, same in found.items() if not same} == differences


def test_adapted(run: Run, data: Path, tmp_path: Path) -> None:
    """The biLM of a task's own text is what the arm learns from."""
    adapted = tmp_path / "adapted"
    run("adapted", adapted, "--data", data, "--tasks", "ner")
    assert (adapted / "ner.texts" / "train.txt").read_text("utf8") == (
        "Ann Smith sang\nI love Paris\n"
    )
    weights = adapted / "ner" / "model-last" / "weights.safetensors"
    before = weights.read_bytes()
    run("adapted", adapted, "--data", data, "--tasks", "ner")
    assert weights.read_bytes() == before  # it is not trained again
    options = ("--data", data, "--tasks", "ner", "--arms", "ELMo, adapted", "--seeds", 0)
    with pytest.raises(ValueError, match=r"missing.ner.model-last"):
        run("downstream", tmp_path / "out", *options, "--adapted", tmp_path / "missing")
    options += ("--max-steps", 1, "--adapted", adapted)
    out = run("downstream", tmp_path / "out", *options)
    assert out.startswith("ner all ELMo, adapted 0 ")


@pytest.mark.parametrize("task", TASKS)
def test_every_task(data: Path, task: str) -> None:
    """Has Docs in all splits; of the small treebanks, all are to learn from here."""
    is_small = FEW in TASKS[task].steps
    for split in ("train", "test") if is_small else ("train", "dev", "test"):
        assert list(TASKS[task].read(data, split))


def test_entities(run: Run, data: Path, tmp_path: Path) -> None:
    few = (tmp_path / "out.jsonl", "--data", data, "--seeds", 0, "--steps", 1, 60)
    out = run("entities", *few)
    assert all(f"{name}, 1 steps, last: " in out for name in ("recipe", "beam", "BiLSTM"))
    assert "recipe, 60 steps, last: 100.0" in out
    assert run("entities", *few) == out  # all are there


def test_recipes(run: Run, data: Path, tmp_path: Path) -> None:
    """Each recipe learns, is kept, timed, and compared with that of `elmo add`; a swap of weights
    for themselves changes no prediction."""
    out, kept = tmp_path / "out.jsonl", tmp_path / "kept"
    arms = ("--arms", "without", "elmo_add", "four_layers", "shared_one_layer", "light")
    given = (out, "--data", data, "--tasks", "English, 100", "names", "--seeds", 0, *arms)
    few = (*given, "--steps", 2, "--save", kept, "--swap", "en_sm")
    printed = run("recipes", *few)
    records = [json.loads(line) for line in out.read_text("utf8").splitlines()]
    by_arm = {r["unit"]["arm"]: r["found"] for r in records if r["unit"]["task"] != "names"}
    assert len(records) == 2 * len(by_arm) and "swapped" not in by_arm["without"]
    swapped = [found["swapped"] for arm, found in by_arm.items() if arm != "without"]
    assert {each["differ"] for each in swapped} == {0.0}
    assert by_arm["light"]["MB"] < by_arm["elmo_add"]["MB"] < by_arm["four_layers"]["MB"]
    assert run("recipes", *few) == printed  # all are there
    timed = run("recipes", *given, "--times", kept, "--runs", 1).splitlines()
    rows = [line.strip("| ").split(" | ") for line in timed[2:]]
    labels = [f"English, 100: {name}" for name in ("tags", "trees", "sentence ends")]
    costs = ["… µs a word", "… MB"]
    assert [row[0] for row in rows] == [*labels, *costs, "names: NER", *costs]
    assert all(float(cell) > 0 for row in rows if row[0] in costs for cell in row[1:6])
