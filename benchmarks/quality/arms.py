"""What the benchmarks compare: the token vectors that a component learns from, its arms.

Every arm of a task has the same component and encoder around it. Some need files (`Files`) that
other scripts make.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import embedded  # noqa: F401  registers its architecture
import spacy
from spacy.cli.init_config import init_config
from spacy.language import Language
from spacy.util import load_model_from_config
from tasks import Task

from spacy_elmo import add_elmo

WIDTH = 96  # of spaCy's HashEmbedCNN
TOKENIZER = {"@tokenizers": "spacy.Tokenizer.v1"}  # whose words are those of the data
REDUCE = {
    "@architectures": "spacy.TextCatReduce.v1",
    "exclusive_classes": True,
    "use_reduce_first": False,
    "use_reduce_last": False,
    "use_reduce_max": True,
    "use_reduce_mean": True,
}

Files = Mapping[str, Path]  # see `NEEDED`
NEEDED = {
    "static": "directory of static vectors, of `spacy init vectors`",
    "pretrained": "output of benchmarks/quality/pretrained.py",
    "embedded": "output of benchmarks/peers/embed.py",
    "adapted": "output of benchmarks/quality/adapted.py",
}


class Arm(NamedTuple):
    """What a component learns from.

    Attributes:
        tok2vec: config of its token vectors, or of the whole model.
        elmo: settings of the biLM that are not the defaults; None: no ELMo.
        needs: a key of `NEEDED`, if it needs a file.
        times: how many times as many steps as the others it is trained for.
        learn_rate: of all that it trains, the mix included.
    """

    tok2vec: dict[str, Any]
    elmo: dict[str, Any] | None = None
    needs: str = ""
    times: int = 1
    learn_rate: float = 0.001


def add_file_options(parser: ArgumentParser) -> None:
    for name, what in NEEDED.items():
        parser.add_argument(f"--{name}", type=Path, help=what)


def given_files(arguments: Namespace, task: str) -> Files:
    """Those of a task: each has a biLM of its own that was adapted to its text."""
    files = {name: path for name in NEEDED if (path := getattr(arguments, name)) is not None}
    if "adapted" in files:
        files["adapted"] = files["adapted"] / task / "model-last"
    return files


def cnn(static: bool = False) -> dict[str, Any]:
    """spaCy's HashEmbedCNN, part by part, as `spacy init config` writes it."""
    config = init_config(pipeline=["tagger"])["components"]["tok2vec"]["model"]
    config["embed"] |= {"include_static_vectors": static, "width": WIDTH}
    return dict(config)


def default(factory: str, tok2vec: dict[str, Any]) -> dict[str, Any]:
    """spaCy's own model of a component, but for its token vectors."""
    meta = spacy.blank("en").get_factory_meta(factory)
    return {**meta.default_config["model"], "tok2vec": tok2vec}


def model(factory: str, tok2vec: dict[str, Any]) -> dict[str, Any]:
    """The same; a simpler one for textcat."""
    return {**REDUCE, "tok2vec": tok2vec} if factory == "textcat" else default(factory, tok2vec)


def recipes() -> dict[str, Any]:
    """The models that `elmo add` writes for a tagger and a text classifier, each of which has
    vectors of its own."""
    tagger = {"factory": "tagger", "model": model("tagger", cnn())}
    components = {"tagger": tagger, "textcat": {"factory": "textcat"}}
    config = add_elmo({"nlp": {"lang": "en", "pipeline": [*components]}, "components": components})
    return {name: config["components"][name]["model"] for name in components}


def listener(**settings: Any) -> dict[str, Any]:
    return {**RECIPES["tagger"]["tok2vec"]["elmo"], **settings}


def with_elmo(
    elmo: dict[str, Any] | None, output: dict[str, Any] | None = None, static: bool = False
) -> dict[str, Any]:
    """HashEmbedCNN as `elmo add` writes it, with these listeners at its input and output."""
    changes = {"elmo": elmo, "output_elmo": output, "@architectures": "spacy-elmo.Tok2Vec.v1"}
    return {**cnn(static), **changes}


def frozen(model: str) -> Arm:
    """Another model's vectors instead of ELMo's, with a mix of its layers."""
    vectors = {"@architectures": "benchmarks.Embedded.v1", "model": model, "path": None}
    return Arm(with_elmo(vectors), needs="embedded")


RECIPES = recipes()
WITHOUT, MIX, BOTH = "HashEmbedCNN", "ELMo, mix (λ = 0.001)", "ELMo, input and output"
LINEAR, ENSEMBLE = "ELMo, TextCatLinear", "TextCatEnsemble"

ARMS: dict[str, Arm] = {
    WITHOUT: Arm(cnn()),
    "HashEmbedCNN, 3 × the steps": Arm(cnn(), times=3),
    "HashEmbedCNN, pretrained": Arm(cnn(), needs="pretrained"),
    "static vectors": Arm(cnn(static=True), needs="static"),
    "en_core_web_sm": frozen("en_core_web_sm"),
    "MiniLM-L6": frozen("minilm"),
    "ELMo, layer 0": Arm(with_elmo(listener(layers=0)), {}),
    "ELMo, top layer": Arm(with_elmo(listener(layers="top")), {}),
    "ELMo, average (λ = 1)": Arm(with_elmo(listener(mix_l2=1.0)), {}),
    MIX: Arm(with_elmo(listener()), {}),
    "ELMo, output": Arm(with_elmo(None, listener()), {}),
    BOTH: Arm(RECIPES["tagger"]["tok2vec"], {}),
    "ELMo, without a CNN": Arm(listener(), {}),
    "ELMo, fine-tuned": Arm(with_elmo(listener()), {"frozen": False, "learn_rate_factor": 0.1}),
    "ELMo, adapted": Arm(with_elmo(listener()), {}, needs="adapted"),
    "ELMo, mix and static vectors": Arm(with_elmo(listener(), static=True), {}, needs="static"),
    LINEAR: Arm(RECIPES["textcat"], {}),
    ENSEMBLE: Arm(default("textcat", cnn())),
}


SETTINGS: dict[str, Arm] = {  # of the listener, to compare on dev sets
    "dropout 0": ARMS[MIX],
    "dropout 0.5": Arm(with_elmo(listener(dropout=0.5)), {}),
    "dropout 0, layer norm": Arm(with_elmo(listener(layer_norm=True)), {}),
}


def fits(task: Task, arm: Arm) -> bool:
    """Whether an arm is one for a task: some are whole text classifiers."""
    return task.factory == "textcat" or not is_classifier(arm)


def is_classifier(arm: Arm) -> bool:
    return ".TextCat" in arm.tok2vec["@architectures"]


def make_nlp(task: Task, arm: Arm, files: Files, weights: str = "en_sm") -> Language:
    """An untrained pipeline, from a config as `spacy train` would read it.

    Args:
        task, arm: what is in it.
        files: what the arm needs.
        weights: of the biLM.
    """
    block = arm.tok2vec
    if arm.needs == "embedded":
        block = {**block, "elmo": {**block["elmo"], "path": str(files["embedded"])}}
    if not is_classifier(arm):
        block = model(task.factory, block)
    components: dict[str, Any] = {task.factory: {"factory": task.factory, "model": block}}
    if arm.elmo is not None:
        weights = str(files["adapted"]) if arm.needs == "adapted" else weights
        elmo = {"@architectures": "spacy-elmo.Elmo.v1", "weights": weights, **arm.elmo}
        components = {"elmo": {"factory": "elmo", "model": elmo}, **components}
    config: dict[str, Any] = {
        "nlp": {"lang": task.lang, "tokenizer": TOKENIZER, "pipeline": list(components)},
        "components": components,
        "initialize": {
            "vectors": str(files["static"]) if arm.needs == "static" else None,
        },
    }
    return load_model_from_config(config, auto_fill=True)


def load_pretrained(nlp: Language, arm: Arm, files: Files) -> None:
    """Give the initialized tok2vec of the last component the weights that the arm starts from."""
    if arm.needs == "pretrained":
        _, component = nlp.pipeline[-1]
        tok2vec = next(node for node in component.model.walk() if node.has_ref("embed"))
        tok2vec.from_bytes(files["pretrained"].read_bytes())
