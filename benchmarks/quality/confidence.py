"""How often is an entity right that has a score? Of a beam's parses, and of `spancat`.

    python benchmarks/quality/confidence.py --data DATA [--components …] [--steps 1000] [--seed 0]

Each component learns from WNUT-17's training set with ELMo, as in `downstream.py`, and reads the
dev set. Printed are its F1 as spaCy counts it, and of each bin of scores the number of
entities that it proposes, their mean score, and how many are right, in percent.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from arms import ARMS, MIX
from downstream import train
from spacy.tokens import Doc
from tasks import Task, examples_of, read_wnut

BINS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)  # the edges
BEAM = {"beam_width": 16, "beam_density": 0.0001}

Scores = list[dict[tuple[int, int, str], float]]  # of each Doc: start, end and label of a span


def read_spans(data: Path, split: str) -> Iterator[Doc]:
    for doc in read_wnut(data, split):
        doc.spans["sc"] = doc.ents
        yield doc


def beam_scores(ner: Any, docs: list[Doc]) -> Scores:
    return [dict(each) for each in ner.scored_ents(ner.beam_parse(docs, **BEAM))]


def span_scores(spancat: Any, docs: list[Doc]) -> Scores:
    spans, scores = spancat.predict(docs)
    of_docs = np.split(scores, np.cumsum(spans.lengths)[:-1])
    return [
        {
            (int(start), int(end), label): float(score)
            for (start, end), row in zip(spans[i].dataXd, of_doc, strict=True)
            for label, score in zip(spancat.labels, row, strict=True)
        }
        for i, of_doc in enumerate(of_docs)
    ]


COMPONENTS = {
    "ner": (Task("ner", "ents_f", {"all": 1000}, read_wnut), beam_scores),
    "beam_ner": (Task("beam_ner", "ents_f", {"all": 1000}, read_wnut), beam_scores),
    "spancat": (Task("spancat", "spans_sc_f", {"all": 1000}, read_spans), span_scores),
}


def measure(data: Path, name: str, seed: int, steps: int) -> tuple[float, np.ndarray]:
    """F1 in percent, and (score, 1 if it is right) of each entity that was proposed, (n, 2)."""
    task, score = COMPONENTS[name]
    nlp = train(task, "all", ARMS[MIX], seed, data, {}, max_steps=steps)
    examples = examples_of(nlp, task, data, "dev")
    f1 = 100 * nlp.evaluate(examples)[task.score]
    docs = list(nlp.pipe([example.x.copy() for example in examples], disable=[name]))
    pairs = []
    for example, scores in zip(examples, score(nlp.get_pipe(name), docs), strict=True):
        gold = {(ent.start, ent.end, ent.label_) for ent in example.reference.ents}
        pairs += [(scored, float(span in gold)) for span, scored in scores.items()]
    return f1, np.array(pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--components", nargs="+", choices=COMPONENTS, default=["ner", "spancat"])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for name in arguments.components:
        f1, pairs = measure(arguments.data, name, arguments.seed, arguments.steps)
        print(f"{name}: F1 {f1:.1f}", flush=True)
        for low, high in pairwise(BINS):
            inside = pairs[(pairs[:, 0] > low) & (pairs[:, 0] <= high)]
            score, right = 100 * inside.mean(0) if len(inside) else (0, 0)
            print(f"  {low} to {high}: {len(inside):4} entities, {score:3.0f} {right:3.0f} % right")


if __name__ == "__main__":
    main()
