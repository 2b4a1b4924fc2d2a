"""Recipes by which `elmo add` could let a tagger, a parser and NER learn from ELMo.

    python benchmarks/quality/recipes.py OUT --data DATA --weights en_sm INT8 [--arms …] [--seeds …]

Each arm is the config that `elmo add` writes, changed, and trained with fixed steps: a tagger and a
parser together on 500 sentences of EWT in Docs of ten, NER on WNUT-17. Nothing is selected; scores
are those of the dev sets after the last step. A pipeline is trained on one of the two weights, in
turn, and reads with both (see `int8.py`). OUT is a file of `results.py`.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from downstream import train_for
from int8 import predictions, read_with
from results import Results
from spacy.cli.init_config import init_config
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.util import fix_random_seed, load_model_from_config
from tasks import batches, read_ewt, read_wnut
from thinc.api import Adam, Config

from spacy_elmo import add_elmo
from spacy_elmo.weights.find import load_bilm

Block = dict[str, Any]
PART = "recipes"  # of the results
SCORES = {"tagger,parser": ["tag_acc", "dep_las", "sents_f"], "ner": ["ents_f"]}
STEPS = {"tagger,parser": 600, "ner": 1000}
MIX = {"@architectures": "spacy-elmo.ElmoListener.v1", "upstream": "elmo"}
WIDTH = 96


def four_layers(config: Block) -> None:
    """What `elmo add` wrote first: four layers, ELMo at their input and at their output."""
    change(config, encode={"depth": 4}, output_elmo=MIX)
    if "ner" in config["components"]:
        config["components"]["ner"]["model"]["tok2vec"]["output_elmo"] = None


def one_layer(config: Block) -> None:
    """One layer, ELMo at its input."""
    change(config, encode={"depth": 1}, output_elmo=None)


def no_layer(config: Block) -> None:
    """An embedding and ELMo, reduced to the width of the embedding."""
    change(config, encode=None, output_elmo=None, width=WIDTH)


def shared(config: Block, depth: int = 1, width: int | None = WIDTH, mix: bool = True) -> None:
    """One `tok2vec` of one layer with ELMo at its input for all; behind it, the mix of each, both
    reduced to the width of one."""
    components = config["components"]
    name = config["nlp"]["pipeline"][1]
    model = deepcopy(components[name]["model"]["tok2vec"])
    model |= {"encode": {**model["encode"], "depth": depth, "width": WIDTH}, "output_elmo": None}
    model["embed"] = {**model["embed"], "width": WIDTH}
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": WIDTH, "upstream": "tok2vec"}
    change(config, embed=listener, encode=None, output_elmo=None, width=width)
    if not mix:
        for name in config["nlp"]["pipeline"][1:]:
            config["components"][name]["model"]["tok2vec"] = listener
    components["tok2vec"] = {"factory": "tok2vec", "model": model}
    config["nlp"]["pipeline"].insert(1, "tok2vec")


def shared_as_it_is(config: Block) -> None:
    """The same, not reduced."""
    shared(config, width=None)


def shared_four(config: Block) -> None:
    """The same with four layers."""
    shared(config, depth=4, width=None)


def shared_alone(config: Block) -> None:
    """A shared `tok2vec` of one layer without mixes behind it."""
    shared(config, mix=False)


ARMS: dict[str, Callable[[Block], None]] = {
    each.__name__: each
    for each in (
        four_layers,
        one_layer,
        no_layer,
        shared,
        shared_as_it_is,
        shared_four,
        shared_alone,
    )
}


def change(config: Block, encode: Block | None, **settings: Any) -> None:
    """Change the token vectors of all components that listen."""
    for name in config["nlp"]["pipeline"]:
        if name in ("tagger", "parser", "ner"):
            block = config["components"][name]["model"]["tok2vec"]
            block["embed"]["width"] = WIDTH
            block["encode"] = encode and {**block["encode"], "width": WIDTH, **encode}
            block.update(deepcopy(settings))


def make_config(pipeline: str, arm: str, weights: str) -> Config:
    base = init_config(lang="en", pipeline=pipeline.split(","), optimize="efficiency")
    config = add_elmo(base, weights=weights)
    ARMS[arm](config)
    return config


def read(data: Path, pipeline: str, split: str, n: int | None = None) -> list[bytes]:
    """Docs of a task as bytes."""
    if pipeline == "ner":
        docs = itertools.islice(read_wnut(data, split), n)
    else:
        docs = itertools.islice(read_ewt(data, split, n_sents=10), n and n // 10)
    return [DocBin(docs=[doc], store_user_data=True).to_bytes() for doc in docs]


def examples(nlp: Any, docs: list[bytes]) -> list[Example]:
    found = [doc for each in docs for doc in DocBin().from_bytes(each).get_docs(nlp.vocab)]
    return [Example(nlp.make_doc(doc.text), doc) for doc in found if len(doc)]


def measure(unit: Block, data: Path, weights: list[str], steps: int | None) -> Block:
    """Train once; the scores in percent by each of the weights, and predictions that differ."""
    pipeline, seed = unit["pipeline"], unit["seed"]
    fix_random_seed(seed)
    config = make_config(pipeline, unit["arm"], unit["weights"])
    nlp = load_model_from_config(config, auto_fill=True)
    every = examples(nlp, read(data, pipeline, "train", 500 if pipeline != "ner" else None))
    random.Random(seed).shuffle(every)
    nlp.initialize(lambda: every)
    optimizer = Adam(0.001, L2=0.01, grad_clip=1.0, L2_is_weight_decay=True, use_averages=True)
    given = batches(every, 400, seed)
    train_for(nlp, optimizer, given, 0.1, steps or STEPS[pipeline])
    scores, said = {}, []
    dev = examples(nlp, read(data, pipeline, "dev", 1000))
    with nlp.use_params(optimizer.averages):
        scores["averaged parameters"] = nlp.evaluate(dev)
    for setting in weights:
        read_with(nlp, load_bilm(setting))
        scores[setting] = nlp.evaluate(dev)
        docs = nlp.pipe([nlp.make_doc(example.reference.text) for example in dev])
        said.append([each for doc in docs for each in predictions(doc)])
    differ = statistics.mean(a != b for a, b in zip(*said, strict=True))
    size = sum(len(nlp.get_pipe(name).to_bytes()) for name in nlp.pipe_names if name != "elmo")
    of = {kind: {n: 100 * found[n] for n in SCORES[pipeline]} for kind, found in scores.items()}
    return {"scores": of, "differ": 100 * differ, "MB": size / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", nargs=2, required=True)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--pipelines", nargs="+", choices=SCORES, default=list(SCORES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, help="only try it, with so many steps")
    options = parser.parse_args()
    results = Results(options.out)
    for seed, pipeline, arm in itertools.product(options.seeds, options.pipelines, options.arms):
        trained = options.weights[(list(ARMS).index(arm) + seed) % 2]
        unit = {"pipeline": pipeline, "arm": arm, "seed": seed, "weights": trained}
        results.read()
        if (found := results.find(PART, unit, None)) is None:
            found = measure(unit, options.data, options.weights, options.steps)
            results.add(PART, unit, None, found)
        print(*unit.values(), found, flush=True)


if __name__ == "__main__":
    main()
