"""What int8 gates change in pipelines that were trained with float ones, and the reverse.

    python -m spacy elmo convert en_sm INT8 --int8
    python benchmarks/quality/int8.py OUT INT8 --data DATA [--weights en_sm] [--seeds 0 1 2 3]

Trains each task on the vectors of a biLM and on those of the same biLM with int8 gates, and gives
the scores of the dev set by each of the two, and the share of words whose prediction differs. OUT
is a file of `results.py`. Two trainings differ already where one is rounded otherwise, so what
counts is one trained pipeline that reads with both.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from pathlib import Path
from typing import Any

from arms import ARMS, LINEAR, MIX
from downstream import train
from results import Results, fingerprint
from spacy.language import Language
from spacy.tokens import Doc
from tasks import TASKS, Size, examples_of

from spacy_elmo.bilm.model import BiLM
from spacy_elmo.weights.find import load_bilm

PART = "int8"  # of the results
SIZES: dict[str, Size] = {"tagger": 500, "parser": 500, "ner": "all", "requests": 1500}


def read_with(nlp: Language, weights: BiLM) -> None:
    """Let the frozen biLM of a pipeline read by other weights of its shape."""
    layer = nlp.get_pipe("elmo").bilm
    layer.model.load_state_dict(weights.state_dict())
    layer.model.config = weights.config
    layer.model.clear_caches()
    layer.clear_caches()


def predictions(doc: Doc) -> list[Any]:
    """What is predicted of each word, and of the text."""
    words = [(t.tag_, t.head.i, t.dep_, t.ent_iob_, t.ent_type_) for t in doc]
    return [*words, max(doc.cats, key=doc.cats.__getitem__)] if doc.cats else words


def measure(unit: dict[str, Any], data: Path, settings: dict[str, str]) -> dict[str, Any]:
    """Scores by the weights of both kinds, and the share of predictions that differ, in percent."""
    task = TASKS[unit["task"]]
    arm = ARMS[LINEAR if task.factory == "textcat" else MIX]
    size, trained = SIZES[unit["task"]], settings[unit["trained"]]
    nlp = train(task, size, arm, unit["seed"], data, {}, trained)
    scores, said = {}, []
    for kind, setting in settings.items():
        read_with(nlp, load_bilm(setting))
        examples = examples_of(nlp, task, data, "dev")
        docs = nlp.pipe([example.predicted.copy() for example in examples])
        said.append([each for doc in docs for each in predictions(doc)])
        scores[kind] = 100 * nlp.evaluate(examples)[task.score]
    differ = statistics.mean(a != b for a, b in zip(*said, strict=True))
    return {"scores": scores, "differ": 100 * differ}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("int8", help="the weights with int8 gates")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", default="en_sm", help="(default: en_sm)")
    parser.add_argument("--tasks", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3])
    options = parser.parse_args()
    results, weights = Results(options.out), fingerprint(options.weights)
    settings = {"float": options.weights, "int8": options.int8}
    for seed, name, kind in itertools.product(options.seeds, options.tasks, settings):
        unit = {"task": name, "seed": seed, "trained": kind}
        if (found := results.find(PART, unit, weights)) is None:
            found = measure(unit, options.data, settings)
            results.add(PART, unit, weights, found)
        print(*unit.values(), found, flush=True)
    print("| | trained in | read in float | in int8 | difference | predictions that differ |")
    for name, kind in itertools.product(options.tasks, settings):
        units = ({"task": name, "seed": seed, "trained": kind} for seed in options.seeds)
        every = [results.find(PART, unit, weights) for unit in units]
        by = {of: statistics.mean(each["scores"][of] for each in every) for of in settings}
        differ = statistics.mean(each["differ"] for each in every)
        figures = by["float"], by["int8"], by["int8"] - by["float"]
        print(f"| {name} | {kind} | " + "{:.2f} | {:.2f} | {:+.2f}".format(*figures), end="")
        print(f" | {differ:.2f} % |")


if __name__ == "__main__":
    main()
