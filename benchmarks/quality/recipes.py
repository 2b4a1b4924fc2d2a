"""Recipes by which `elmo add` could let a tagger, a parser and NER learn from ELMo.

    python benchmarks/quality/recipes.py OUT --data DATA --weights FLOAT INT8 [--arms …] [--seeds …]

Each arm is the config that `elmo add` writes, changed, and trained with fixed steps: a tagger and a
parser together on 500 sentences of EWT in Docs of ten, NER on WNUT-17. Nothing is selected; scores
are those of the dev sets after the last step, and with the averages of the parameters. A pipeline
is trained on one of the two weights, in turn, and reads with both (see `int8.py`). OUT is a file of
`results.py`.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
from collections.abc import Callable, Collection
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


def elmo_add(config: Block) -> None:
    """What `elmo add` writes: the `tok2vec`, of four layers, reads ELMo for all; behind it, the mix
    of each component."""


def shared_one_layer(config: Block) -> None:
    """The same with one layer."""
    config["components"]["tok2vec"]["model"]["encode"]["depth"] = 1


def shared_alone(config: Block) -> None:
    """That without mixes behind it."""
    shared_one_layer(config)
    for name in config["nlp"]["pipeline"][2:]:
        model = config["components"][name]["model"]
        model["tok2vec"] = model["tok2vec"]["embed"]


def one_layer(config: Block) -> None:
    """Embedding and encoder of one layer in each component, ELMo at its input."""
    give_each_its_own(config, 1)


def four_layers(config: Block) -> None:
    """The same with four layers, and for a tagger and a parser ELMo at its output, too."""
    give_each_its_own(config, 4, {"tagger", "parser"})


def give_each_its_own(config: Block, depth: int, twice: Collection[str] = ()) -> None:
    shared = config["components"].pop("tok2vec")["model"]
    config["nlp"]["pipeline"].remove("tok2vec")
    for name in config["nlp"]["pipeline"][1:]:
        own = deepcopy(shared)
        own["embed"]["width"] = own["encode"]["width"]
        own["encode"]["depth"] = depth
        own["output_elmo"] = deepcopy(own["elmo"]) if name in twice else None
        config["components"][name]["model"]["tok2vec"] = own


ARMS: dict[str, Callable[[Block], None]] = {
    each.__name__: each
    for each in (four_layers, one_layer, shared_alone, shared_one_layer, elmo_add)
}


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
