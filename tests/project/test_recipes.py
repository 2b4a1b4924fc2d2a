"""The recipes in ``project/configs``: complete, and trained by spaCy's own commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.cli.debug_config import debug_config
from spacy.cli.init_config import fill_config
from spacy.cli.train import train
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import dict_to_dot, load_config, load_model_from_config

from spacy_elmo.pipeline.listener import ElmoListener
from spacy_elmo.weights.find import load_bilm

from ..pipeline.helpers import TEXTS, write_statistics, write_weights
from .sentences import TOPICS, annotated_docs

CONFIGS = Path(__file__).parents[2] / "project" / "configs"
RECIPES = {path.stem: path for path in sorted(CONFIGS.glob("*.cfg")) if "pretrain" not in path.stem}
STEPS = 40


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of weights, sentences and word vectors."""
    folder = tmp_path_factory.mktemp("assets")
    write_statistics(write_weights(folder / "tiny"), (sentence.split() for sentence in TEXTS))
    nlp = spacy.blank("en")
    docs = list(annotated_docs(nlp.vocab))
    DocBin(docs=docs).to_disk(folder / "sentences.spacy")
    rng = np.random.default_rng(0)
    for word in sorted({token.text for doc in docs for token in doc}):
        nlp.vocab.set_vector(word, rng.normal(size=12).astype("float32"))
    nlp.to_disk(folder / "vectors")
    return folder


def overrides_of(recipe: str, assets: Path) -> dict[str, Any]:
    """What a recipe is given on the command line."""
    sentences = str(assets / "sentences.spacy")
    given = {"paths.train": sentences, "paths.dev": sentences, "vars.weights": str(assets / "tiny")}
    if recipe == "static_vectors":
        given["paths.vectors"] = str(assets / "vectors")
    return given


@pytest.mark.parametrize("recipe", RECIPES)
def test_complete(recipe: str, tmp_path: Path) -> None:
    """All settings are there: a recipe goes on meaning the same when a default changes."""
    fill_config(tmp_path / "filled.cfg", RECIPES[recipe], silent=True)
    filled = load_config(tmp_path / "filled.cfg")
    # By their full names: what is missing is easier to see so.
    assert dict_to_dot(load_config(RECIPES[recipe])) == dict_to_dot(filled)
    assert load_config(RECIPES[recipe], interpolate=True) == filled.interpolate()


@pytest.mark.parametrize("recipe", RECIPES)
def test_valid(recipe: str, assets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    debug_config(RECIPES[recipe], overrides=overrides_of(recipe, assets))
    assert "Config is valid" in capsys.readouterr().out


@pytest.mark.parametrize("recipe", RECIPES)
def test_mentioned(recipe: str) -> None:
    """In the folder's table, and each says how it is run and what it gains."""
    assert f"`{recipe}.cfg`" in (CONFIGS / "README.md").read_text(encoding="utf-8")
    first_comment, _, _ = RECIPES[recipe].read_text(encoding="utf-8").partition("\n\n")
    assert f"spacy train {recipe}.cfg" in first_comment
    gains = re.search(r"# What it gains.*?:(.*)", first_comment, re.DOTALL)[1]
    assert "not measured" in gains or "docs/evidence.md" in gains


def labels(name: str, docs: list[Doc]) -> set[str]:
    """What a component has found in the texts."""
    if name == "ner":
        return {ent.label_ for doc in docs for ent in doc.ents}
    if name == "spancat":
        return {span.label_ for doc in docs for span in doc.spans["sc"]}
    if name == "textcat":
        return {max(doc.cats, key=lambda topic: doc.cats[topic]) for doc in docs}
    attribute = {"tagger": "tag_", "morphologizer": "pos_", "parser": "dep_"}[name]
    return {getattr(token, attribute) for doc in docs for token in doc}


LEAST = {  # what each has to find; an empty set: something
    "tagger": {"DT", "NN", "VBD"},
    "morphologizer": {"DET", "NOUN", "VERB"},
    "parser": {"ROOT", "det", "nsubj"},
    "ner": set(),
    "spancat": set(),
    "textcat": set(TOPICS),
}


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_trained(recipe: str, assets: Path, tmp_path: Path) -> None:
    """End to end, with a tiny biLM; then from disk."""
    overrides = {
        **overrides_of(recipe, assets),
        "training.max_steps": STEPS,
        "training.eval_frequency": STEPS // 2,
    }
    config = load_config(RECIPES[recipe])
    rate = "training.optimizer.learn_rate"
    if isinstance(config["training"]["optimizer"]["learn_rate"], dict):
        overrides[f"{rate}.warmup_steps"] = 1
        rate += ".initial_rate"
    overrides[rate] = 0.005  # for so few steps
    if "parser" in config["nlp"]["pipeline"]:
        overrides["components.parser.min_action_freq"] = 1
    train(RECIPES[recipe], tmp_path / "out", overrides=overrides)
    nlp = spacy.load(tmp_path / "out" / "model-last")
    assert nlp.pipe_names == config["nlp"]["pipeline"]

    docs = list(nlp.pipe(doc.text for doc in annotated_docs(nlp.vocab)))
    for name in nlp.pipe_names:
        if name in LEAST:
            found = labels(name, docs)
            assert found and found >= LEAST[name]
    [empty, _] = nlp.pipe(["", "The ducks slept ."])
    assert len(empty) == 0 and len(nlp("")) == 0
    assert nlp.pipe_names[-1] == "doc_cleaner"
    assert all(doc.tensor is None for doc in docs)
    nlp.remove_pipe("doc_cleaner")
    width = nlp.get_pipe("elmo").model.get_dim("nO")  # the tensor may be a tok2vec's by now
    assert nlp("The ducks slept .")[1]._.elmo.shape == (width,)

    for mix in mixes(nlp):
        assert mix.get_param("w").any(), "a mix has not learned"
    assert len(mixes(nlp)) == RECIPES[recipe].read_text().count('"spacy-elmo.ElmoListener.v1"')
    frozen = config["components"]["elmo"]["model"]["frozen"]
    before = load_bilm(assets / "tiny").state_dict()
    after = nlp.get_pipe("elmo").bilm.model.state_dict()
    assert all(np.array_equal(after[name], value) for name, value in before.items()) == frozen


def mixes(nlp: Language) -> list[Any]:
    """Those of the listeners."""
    return [
        node.layers[0]
        for _, pipe in nlp.pipeline
        if hasattr(pipe, "model")
        for node in pipe.model.walk()
        if isinstance(node, ElmoListener)
    ]


@pytest.mark.parametrize("given", ["tags", "trees", "entities"])
def test_joint_learns_from_any_annotation(given: str, assets: Path) -> None:
    """spaCy's tok2vec learns when its last listener does, which must not skip a batch."""
    overrides = {**overrides_of("joint", assets), "components.parser.min_action_freq": 1}
    nlp = load_model_from_config(load_config(RECIPES["joint"], overrides, interpolate=True))
    every = [Example(nlp.make_doc(doc.text), doc) for doc in annotated_docs(nlp.vocab)]
    optimizer = nlp.initialize(lambda: every)
    [mix] = mixes(nlp)
    for _ in range(3):  # the first steps leave the zeros that output layers start with
        batch = [Example(nlp.make_doc(eg.text), only(given, eg.reference)) for eg in every]
        nlp.update(batch, sgd=False)
        for _, pipe in nlp.pipeline:
            if getattr(pipe, "is_trainable", False):
                pipe.finish_update(optimizer)
    assert mix.get_param("w").any()


def only(given: str, doc: Doc) -> Doc:
    """A copy with one kind of annotation."""
    kinds = {"tags": ["TAG"], "trees": ["HEAD", "DEP"], "entities": ["ENT_IOB", "ENT_TYPE"]}
    words = [token.text for token in doc]
    return Doc(doc.vocab, words=words).from_array(kinds[given], doc.to_array(kinds[given]))
