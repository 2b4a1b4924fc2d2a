"""How sure is an entity? Precision and recall on WNUT-17's dev set by the least confidence.

    python benchmarks/quality/confidence.py --data DATA [--factories …] [--steps N]

`ner` is trained as in `downstream.py`, with ELMo, and its beam gives each entity the share of the
beam's parses that have it; `spancat` gives each span a score. One seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arms import ARMS, MIX
from downstream import train
from spacy.language import Language
from spacy.tokens import Doc
from tasks import Task, examples_of, read_wnut

THRESHOLDS = (0.0, 0.3, 0.5, 0.7, 0.9, 0.95)
BEAM = {"beam_width": 16, "beam_density": 0.0001}

Entities = dict[tuple[int, int, str], float]  # start, end and label, with their confidence


def read(data: Path, split: str) -> Iterator[Doc]:
    for doc in read_wnut(data, split):
        doc.spans["sc"] = list(doc.ents)
        yield doc


def by_beam(nlp: Language, docs: list[Doc]) -> list[Entities]:
    ner: Any = nlp.get_pipe("ner")
    return [dict(each) for each in ner.scored_ents(ner.beam_parse(docs, **BEAM))]


def by_spancat(nlp: Language, docs: list[Doc]) -> list[Entities]:
    nlp.get_pipe("spancat").cfg["threshold"] = 0.05
    groups = [doc.spans["sc"] for doc in nlp.get_pipe("spancat").pipe(docs)]
    scored = (zip(group, group.attrs["scores"], strict=True) for group in groups)
    return [{(s.start, s.end, s.label_): float(score) for s, score in each} for each in scored]


def measure(factory: str, data: Path, steps: int) -> None:
    task = Task(factory, "ents_f", {"all": steps}, read)
    nlp = train(task, "all", ARMS[MIX], 0, data, {}, max_steps=steps)
    examples = examples_of(nlp, task, data, "dev")
    docs = [nlp.get_pipe("elmo")(example.predicted) for example in examples]
    found = (by_beam if factory == "ner" else by_spancat)(nlp, docs)
    gold = [{(e.start, e.end, e.label_) for e in ex.reference.ents} for ex in examples]
    total = sum(map(len, gold))
    for threshold in THRESHOLDS:
        sure = [{e for e, score in each.items() if score >= threshold} for each in found]
        right = sum(len(a & b) for a, b in zip(sure, gold, strict=True))
        n = sum(map(len, sure))
        print(f"{factory} >= {threshold}: {n} entities", end=", ")
        print(
            f"precision {100 * right / max(n, 1):.1f}, recall {100 * right / total:.1f}", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--factories", nargs="+", default=["ner", "spancat"])
    parser.add_argument("--steps", type=int, default=600)
    arguments = parser.parse_args()
    for factory in arguments.factories:
        measure(factory, arguments.data, arguments.steps)


if __name__ == "__main__":
    main()
