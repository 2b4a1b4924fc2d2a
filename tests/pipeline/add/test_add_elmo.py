"""ELMo put into configs: `spacy_elmo.add_elmo`."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.cli.init_config import init_config
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_config, load_model_from_config, registry
from thinc.api import Config, Model

from spacy_elmo import add_elmo, mixes
from spacy_elmo.pipeline.add.blocks import get_block
from spacy_elmo.pipeline.listener import ElmoListener

from ..helpers import WIDTH

RECIPES = [
    path
    for path in sorted(Path(__file__).parents[3].glob("project/configs/*.cfg"))
    if "pretrain" not in path.stem
]
MIXING = (
    "tagger", "morphologizer", "trainable_lemmatizer", "senter", "parser", "ner", "span_finder",
    "spancat", "spancat_singlelabel",
)  # fmt: skip
NAMES = ("ner", "spancat", "spancat_singlelabel")  # with their own encoder, these have one mix
FULL = (*MIXING, "entity_linker")  # every component with token vectors

LISTENER = {
    "@architectures": "spacy-elmo.ElmoListener.v1", "upstream": "elmo", "dropout": 0.0,
    "layer_norm": False, "mix_l2": 0.001, "initial_weights": None, "gamma": 1.0, "trainable": True,
    "layers": "all",
}  # fmt: skip


@pytest.fixture
def quickstart() -> Config:
    """As of the quickstart widget: not complete. The embedding of 'ner' is its own."""
    filled = init_config(lang="en", pipeline=["tagger", "ner"])
    filled["nlp"] = {name: filled["nlp"][name] for name in ("lang", "pipeline")}
    filled["components"]["tagger"]["model"]["tok2vec"]["upstream"] = "tok2vec"
    filled["components"]["ner"]["model"]["tok2vec"] = {
        "@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None, "width": 16,
        "depth": 1, "embed_size": 200, "window_size": 1, "maxout_pieces": 2,
        "subword_features": True
    }  # fmt: skip
    training = {"patience": 77, "annotating_components": ["tok2vec"]}
    paths = {"train": None, "dev": None}
    blocks = {name: filled[name] for name in ("nlp", "components")}
    return Config({**blocks, "training": training, "paths": paths})


def tok2vec_of(config: Config, name: str) -> dict[str, Any]:
    return config["components"][name]["model"]["tok2vec"]


def make_nlp(config: Config) -> Language:
    """The pipeline as `spacy train` makes it."""
    return load_model_from_config(Config().from_str(config.to_str(), interpolate=True))


def learn(nlp: Language) -> None:
    """Two steps."""
    gold = {"tags": ["A", "B", "A"], "entities": ["U-PERSON", "O", "O"]}
    examples = [Example.from_dict(nlp.make_doc("Anna swims here"), gold) for _ in range(4)]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(2):
        nlp.update(examples, sgd=optimizer)


def test_an_entity_linker_shares_no_tok2vec(weights: Path) -> None:
    """It needs ELMo's vectors in doc.tensor: its model is applied to parts of Docs, which have no
    layers."""
    config = add_elmo(init_config(lang="en", pipeline=[*FULL]), weights=weights)
    assert config["nlp"]["pipeline"] == ["elmo", *FULL]
    for name in FULL:
        block = tok2vec_of(config, name)
        assert block["@architectures"] == "spacy-elmo.Tok2Vec.v1"
        reads_twice = name not in (*NAMES, "entity_linker")
        assert (block["output_elmo"] is not None) == reads_twice, name
    listener = tok2vec_of(config, "entity_linker")["elmo"]
    assert listener["@architectures"] == "spacy.Tok2VecListener.v1"
    assert config["components"]["elmo"]["model"]["width"] == WIDTH
    nlp = make_nlp(config)
    assert set(nlp.get_pipe("elmo").listening_components) == {*FULL}


def test_every_component_that_can_learn_does(weights: Path) -> None:
    """A shared tok2vec reads ELMo; what listens to it gets its own mix."""
    mixing = init_config(lang="en", pipeline=[*MIXING])
    config = add_elmo(mixing, weights=weights)
    assert config["nlp"]["pipeline"] == ["elmo", "tok2vec", *MIXING]
    assert config["components"]["tok2vec"]["model"]["elmo"] == LISTENER
    own = tok2vec_of(config, "senter")
    assert own["encode"] and own["elmo"] == own["output_elmo"] == LISTENER
    for name in {*MIXING} - {"senter"}:
        block = tok2vec_of(config, name)
        assert (block["embed"], block["elmo"]) == (tok2vec_of(mixing, name), LISTENER), name
        assert block["encode"] is block["output_elmo"] is None
    nlp = make_nlp(config)
    assert set(nlp.get_pipe("elmo").listening_components) == {"tok2vec", *MIXING}
    assert set(nlp.get_pipe("tok2vec").listening_components) == {*MIXING} - {"senter"}


@pytest.mark.parametrize("name", [*NAMES, "tagger"])
def test_a_component_alone(name: str) -> None:
    """One that finds names gains nothing by a second mix behind the encoder."""
    config = add_elmo(init_config(lang="en", pipeline=[name]))
    assert config["components"]["tok2vec"]["model"]["elmo"] == LISTENER
    kind = "spacy.Tok2VecListener.v1" if name in NAMES else "spacy-elmo.Tok2Vec.v1"
    assert tok2vec_of(config, name)["@architectures"] == kind
    assert add_elmo(config).to_str() == config.to_str()


def test_the_embedding_and_the_encoder_are_kept(quickstart: Config) -> None:
    """Of a shared tok2vec, with its variables, and of one of the component's own."""
    before = deepcopy(quickstart)
    config = add_elmo(quickstart)
    assert quickstart == before
    assert (config["training"]["patience"], config["paths"]["train"]) == (77, None)
    plain, shared = (each["components"]["tok2vec"]["model"] for each in (before, config))
    assert (shared["embed"], shared["encode"]) == (plain["embed"], plain["encode"])
    assert shared["elmo"] == LISTENER and shared["output_elmo"] is None
    assert tok2vec_of(config, "tagger")["embed"] == tok2vec_of(before, "tagger")
    ner = tok2vec_of(config, "ner")
    assert ner["encode"]["width"] == 16 and ner["encode"]["depth"] == 1
    assert ner["embed"]["rows"] == [200, 100, 100, 100]
    assert ner["elmo"] == LISTENER and ner["output_elmo"] is None
    shared["encode"]["width"] = 32
    model = make_nlp(config).get_pipe("tok2vec").model
    assert {node.get_dim("nO") for node in model.walk() if node.name == "hashembed"} == {32}


def test_hash_embed_cnn_is_taken_apart_as_spacy_builds_it(
    quickstart: Config, weights: Path
) -> None:
    parts = tok2vec_of(add_elmo(quickstart, weights=weights), "ner")
    apart = {name: parts[name] for name in ("embed", "encode")}
    blocks = tok2vec_of(quickstart, "ner"), {"@architectures": "spacy.Tok2Vec.v2", **apart}
    whole, apart = (registry.resolve({"model": block})["model"] for block in blocks)
    docs = [Doc(spacy.blank("en").vocab, words=["a", "b"])]
    for model in (whole, apart):
        model.initialize(X=docs)
    apart.from_dict(whole.to_dict())
    assert (whole.predict(docs)[0] == apart.predict(docs)[0]).all()


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_recipes_stay_as_they_are(recipe: Path) -> None:
    """A shared encoder that has ELMo in it, a biLSTM and so on: they learn from it already."""
    config = load_config(recipe)
    assert add_elmo(config) == config


@pytest.mark.parametrize(
    "pipeline, before, after",
    [
        (["tagger", "ner"], "auto", "auto"),
        (["tagger", "parser"], "auto", "doc"),
        (["senter"], "auto", "doc"),
        (["elmo", "parser"], "sents", "sents"),
    ],
)
def test_the_bilm_does_not_decide_where_sentences_end(
    pipeline: list[str], before: str, after: str
) -> None:
    """For those that learn it, it reads whole Docs, unless the user has chosen."""
    config = init_config(lang="en", pipeline=pipeline)
    if "elmo" in pipeline:
        config["components"]["elmo"]["model"]["segments"] = before
    notes: list[str] = []
    assert add_elmo(config, note=notes.append)["components"]["elmo"]["model"]["segments"] == after
    assert any("segments = doc" in note for note in notes) == (before != after)


def test_light_removes_a_tok2vec_with_all_that_names_it(quickstart: Config) -> None:
    quickstart["initialize"] = {"components": {"tok2vec": {}}}
    quickstart["nlp"]["disabled"] = ["tok2vec"]
    notes: list[str] = []
    config = add_elmo(quickstart, light=True, note=notes.append)
    assert config["nlp"]["pipeline"] == ["elmo", "tagger", "ner"]
    assert config["nlp"]["batch_size"] == 128
    assert "tok2vec" not in config["components"]
    assert not config["training"]["annotating_components"] and not config["nlp"]["disabled"]
    assert not config["initialize"]["components"]
    assert "tok2vec: removed, because nothing listens to it any more" in notes
    assert tok2vec_of(config, "tagger") == LISTENER
    notes.clear()
    assert add_elmo(config, light=True, note=notes.append).to_str() == config.to_str()
    assert not notes


def test_tok2vec_is_kept_for_a_frozen_component(weights: Path) -> None:
    frozen = init_config(lang="en", pipeline=[*FULL])
    frozen["training"]["frozen_components"] = ["parser", "tok2vec"]
    with pytest.warns(UserWarning, match="'entity_linker'"):  # it would read another doc.tensor
        config = add_elmo(frozen, weights=weights)
    assert config["nlp"]["pipeline"] == ["elmo", "tok2vec", *FULL]
    assert config["components"]["parser"] == frozen["components"]["parser"]
    assert tok2vec_of(config, "tagger")["elmo"]


def test_variables_into_the_tok2vec_become_values(quickstart: Config) -> None:
    tagger, ner = (quickstart["components"][name]["model"] for name in ("tagger", "ner"))
    ner["hidden_width"] = "${components.tok2vec.model.encode:width}"
    quickstart["vars"] = {"other": {**tagger["tok2vec"], "width": 96}}
    tagger["tok2vec"] = "${vars.other}"
    config = add_elmo(quickstart, light=True)
    assert config["components"]["ner"]["model"]["hidden_width"] == 96
    config = add_elmo(quickstart).interpolate()
    assert config["components"]["ner"]["model"]["hidden_width"] == 96
    assert tok2vec_of(config, "tagger")["embed"]["width"] == 96


def test_static_vectors(weights: Path) -> None:
    """They are kept, but where the config has no vectors they could come from."""
    accurate = init_config(lang="en", pipeline=["tagger"], optimize="accuracy")
    assert accurate["paths"]["vectors"] == "en_core_web_lg"
    kept = add_elmo(accurate, weights=weights)["components"]["tok2vec"]["model"]
    assert kept["embed"]["include_static_vectors"] and kept["encode"]["width"] == 256
    accurate["paths"]["vectors"] = None
    notes: list[str] = []
    config = add_elmo(accurate, weights=weights, note=notes.append)
    without = config["components"]["tok2vec"]["model"]
    assert without == {**kept, "embed": {**kept["embed"], "include_static_vectors": False}}
    assert any("without static vectors" in note for note in notes)
    assert add_elmo(config).to_str() == config.to_str()


def test_the_biLM(quickstart: Config, weights: Path) -> None:
    quickstart["nlp"]["batch_size"] = 256
    config = add_elmo(quickstart)
    assert config["components"]["elmo"]["model"]["weights"] == "en_sm"
    assert config["nlp"]["batch_size"] == 256  # of spaCy's default, a smaller one
    notes: list[str] = []
    tuned = add_elmo(config, weights=weights, frozen=False, note=notes.append)
    changed = {"weights": str(weights), "frozen": False, "learn_rate_factor": 0.1}
    model = config["components"]["elmo"]["model"]
    assert tuned["components"]["elmo"]["model"] == {**model, **changed}
    assert notes == [f"elmo: {name} = {value}" for name, value in changed.items()]
    assert add_elmo(tuned, weights=weights, frozen=False) == tuned
    frozen = add_elmo(tuned, weights="en_sm", frozen=True)
    assert frozen == config


@registry.architectures("test.Part.v1")
def part(part: Model | None = None, tok2vec: Model | None = None) -> Model:
    return tok2vec if part is None else part


@registry.architectures("test.Tok2Vec.v1")
def unknown(width: int = 6) -> Model:
    return Model("unknown", lambda model, docs, is_train: ([], lambda d: docs))


def test_models_of_third_parties(quickstart: Config, weights: Path) -> None:
    """Token vectors are found wherever they are in a model; unknown ones stay, beside ELMo's."""
    inner = {"@architectures": "test.Part.v1", "tok2vec": {"@architectures": "test.Tok2Vec.v1"}}
    outer = {"@architectures": "test.Part.v1", "part": inner}
    quickstart["components"]["tagger"]["model"] = outer
    config = add_elmo(quickstart, weights=weights)
    block = config["components"]["tagger"]["model"]["part"]["tok2vec"]
    assert block["embed"] == {"@architectures": "test.Tok2Vec.v1", "width": 6}
    assert block["encode"] is None and block["elmo"]["upstream"] == "elmo"
    model = make_nlp(config).get_pipe("tagger").model  # type: ignore[attr-defined]
    assert any(isinstance(node, ElmoListener) for node in model.walk())


def test_a_trained_pipeline(tmp_path: Path, quickstart: Config, weights: Path) -> None:
    """Its config gets ELMo as others do, but components that are sourced from it stay."""
    plain = load_model_from_config(quickstart, auto_fill=True)
    learn(plain)
    plain.to_disk(tmp_path / "plain")
    nlp = make_nlp(add_elmo(load_config(tmp_path / "plain" / "config.cfg"), weights=weights))
    learn(nlp)
    assert all(mix.is_trained for mix in mixes(nlp) if mix.component != "elmo")
    nlp.to_disk(tmp_path / "elmo")
    saved = load_config(tmp_path / "elmo" / "config.cfg")
    assert add_elmo(saved) == saved
    source = {"source": str(tmp_path / "plain")}
    quickstart["components"].update(tok2vec=source, tagger=source)
    config = add_elmo(quickstart, weights=weights)
    assert config["nlp"]["pipeline"] == ["elmo", "tok2vec", "tagger", "ner"]
    assert config["components"]["tagger"] == source == config["components"]["tok2vec"]
    assert tok2vec_of(config, "ner")["elmo"]


@pytest.mark.parametrize("kind", ["BOW.v3", "Ensemble.v2", "CNN.v2"])
def test_classifiers(kind: str, weights: Path) -> None:
    """Models of spaCy's become a linear one, if the weights know how frequent words are."""
    optimize = "efficiency" if kind.startswith("BOW") else "accuracy"
    names = ["tagger", "textcat", "textcat_multilabel"]
    config = init_config(lang="en", pipeline=names, optimize=optimize)
    config["initialize"]["vectors"] = None
    for name in names[1:] if kind == "CNN.v2" else ():
        config["components"][name]["model"] = {
            "@architectures": "spacy.TextCatCNN.v2",
            "tok2vec": tok2vec_of(config, name),
            "exclusive_classes": name == "textcat",
        }
    notes: list[str] = []
    added = add_elmo(config, note=notes.append)
    for name in names[1:]:
        model = added["components"][name]["model"]
        assert model["@architectures"] == "spacy-elmo.TextCatLinear.v1"
        assert model["exclusive_classes"] == (name == "textcat")
        assert model["tok2vec"]["upstream"] == "elmo"
    assert "textcat: reads ELMo, by spacy-elmo.TextCatLinear.v1" in notes
    load_model_from_config(added)
    assert add_elmo(added).to_str() == added.to_str()
    if not kind.startswith("BOW"):
        for plain in (add_elmo(config, light=True), add_elmo(config, weights=weights)):
            assert tok2vec_of(plain, "textcat")


def test_classifiers_whose_blocks_are_variables() -> None:
    config = init_config(lang="en", pipeline=["textcat", "textcat_multilabel"])
    config["components"]["textcat_multilabel"]["model"] |= {
        "ngram_size": "${components.textcat.model.ngram_size}",
        "length": "${components.textcat.model.length}",
    }
    load_model_from_config(add_elmo(config))
    config["components"]["textcat_multilabel"]["model"] = "${components.textcat.model}"
    load_model_from_config(add_elmo(config))


def test_a_bag_of_words_stays(weights: Path) -> None:
    """Where ELMo knows nothing of how frequent words are."""
    bag = init_config(lang="en", pipeline=["textcat"])
    for settings in ({"weights": weights}, {"light": True}):
        with pytest.raises(ValueError, match="weights with statistics, and not --light"):
            add_elmo(bag, **settings)
    both = init_config(lang="en", pipeline=["tagger", "textcat"])
    config = add_elmo(both, weights=weights)
    assert config["components"]["textcat"] == both["components"]["textcat"]


TAGGER = "components.tagger.model.tok2vec"
NOTHING = "No component can learn from ELMo"


@pytest.mark.parametrize(
    "path, value, message",
    [
        (f"{TAGGER}.upstream", "gone", "'tagger' listens to 'gone', which is no 'tok2vec'"),
        ("nlp.pipeline", ["sentencizer"], NOTHING),
        ("training.frozen_components", ["tagger", "ner"], NOTHING),
        ("pretraining", {"component": "tok2vec"}, r"\[pretraining\] is for .* 'tok2vec'"),
        (TAGGER, {"@architectures": "spacy-transformers.TransformerListener.v1"}, "a transfo"),
        (TAGGER, {"@architectures": "spacy-curated-transformers.X.v1"}, "without a transfo"),
    ],
)
def test_what_cannot_be_done(quickstart: Config, path: str, value: Any, message: str) -> None:
    quickstart["components"]["sentencizer"] = {"factory": "sentencizer"}
    *names, last = path.split(".")
    get_block(quickstart, tuple(names))[last] = value
    with pytest.raises(ValueError, match=message) as caught:
        add_elmo(quickstart)
    assert "\n" not in str(caught.value)


def test_a_path_is_no_config() -> None:
    with pytest.raises(ValueError, match=r"Give a config, .* not 'base.cfg'"):
        add_elmo("base.cfg")  # type: ignore[arg-type]


def test_weights_that_are_not_there(quickstart: Config) -> None:
    for config in (quickstart, init_config(lang="en", pipeline=["textcat"])):
        with pytest.raises(ValueError, match="Cannot find the ELMo weights 'gone'"):
            add_elmo(config, weights="gone")
