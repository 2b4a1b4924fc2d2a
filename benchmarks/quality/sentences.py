"""Does ELMo tell a parser and a senter where sentences end, by what the biLM reads at once?

    python benchmarks/quality/sentences.py OUT --data DATA [--factories …] [--steps 200]

500 sentences of UD English-EWT, one or ten a Doc, are learned without ELMo, with `segments =
"auto"` (the biLM reads what stands between sentence-final marks) and with `"doc"` (the whole Doc).
F1 of sentences and labelled attachment are those of the dev set, one and ten sentences a Doc. The
rest is as in `downstream.py`.
"""

from __future__ import annotations

import itertools
from functools import cache, partial
from pathlib import Path
from typing import Any

from arms import ARMS, BOTH, WITHOUT
from downstream import train
from results import Results, fingerprint, make_parser
from spacy.tokens import Doc
from tasks import Task, examples_of, read_ewt

N_SENTENCES = 500
N_READ = {"train": 2000, "dev": 600}  # sentences; the first ones
PART = "sentences"
SEGMENTS = {"without ELMo": None, "auto": "auto", "doc": "doc"}


@cache
def read(n_sents: int, data: Path, split: str) -> list[Doc]:
    """So many sentences a Doc."""
    return list(itertools.islice(read_ewt(data, split, n_sents), N_READ[split] // n_sents))


def measure(
    factory: str, n_sents: int, segments: str | None, seed: int, data: Path, steps: int
) -> Any:
    """Train on Docs of so many sentences: scores on the dev set by its sentences a Doc."""
    task = Task(factory, "sents_f", {N_SENTENCES // n_sents: steps}, partial(read, n_sents))
    arm = ARMS[BOTH]._replace(elmo={"segments": segments}) if segments else ARMS[WITHOUT]
    nlp = train(task, N_SENTENCES // n_sents, arm, seed, data, {}, max_steps=steps)
    found = {}
    for n in (1, 10):
        scores = nlp.evaluate(examples_of(nlp, task._replace(read=partial(read, n)), data, "dev"))
        found[str(n)] = [100 * scores[name] for name in ("sents_f", "dep_las") if name in scores]
    return found


def main() -> None:
    parser = make_parser(__doc__.split("\n")[0])
    parser.add_argument("--factories", nargs="+", default=["parser", "senter"])
    parser.add_argument("--n-sents", nargs="+", type=int, default=[1, 10], help="a Doc to learn")
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    results, weights = Results(arguments.out), fingerprint("en_sm")
    data, steps = arguments.data, arguments.steps
    for seed, factory, n_sents, (name, segments) in itertools.product(
        arguments.seeds, arguments.factories, arguments.n_sents, SEGMENTS.items()
    ):
        unit = {"factory": factory, "n_sents": n_sents, "segments": name, "seed": seed}
        function = partial(measure, factory, n_sents, segments, seed, data, steps)
        of = weights if segments else None
        results.get(PART, {**unit, "steps": steps}, of, function)
    results.print_means(PART)


if __name__ == "__main__":
    main()
