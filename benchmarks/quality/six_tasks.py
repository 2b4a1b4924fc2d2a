"""The paper's table: six tasks without ELMo and with it, and GAP.

    python benchmarks/quality/six_tasks.py OUT --data DATA [--tasks …] [--arms …] [--shares …]

The components, data and configs are those of project/six_tasks. Every arm of a task has the same
model, data, seed, batches and steps; nothing is selected, and the scores are those after the last
step. Those of the dev set, by which settings are chosen, are stored, too.
benchmarks/README.md has the layout of DATA, which is read into .spacy files once, in --corpora.

OUT is a file of `results.py`: what is in it is not measured again, and several processes may share
it. ``--embedded`` is a directory of `peers/embed.py`, which the arm of MiniLM's layers needs.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import embedded  # noqa: F401  registers its architecture
from downstream import train_for
from results import Results, fingerprint, make_parser
from spacy.lang.en import English
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.loop import create_train_batches
from spacy.util import fix_random_seed, load_model_from_config, registry
from thinc.api import Config

from spacy_elmo import mixes

PROJECT = Path(__file__).parents[2] / "project" / "six_tasks"
sys.path.append(str(PROJECT))

from paper_tasks.arms import ARMS, TASKS, Arm, Task, error_reduction, make_config  # noqa: E402
from paper_tasks.corpus import make_example, read_docs  # noqa: E402
from paper_tasks.datasets import write_corpus  # noqa: E402

PART = "six tasks"  # of the results
Unit = dict[str, Any]  # "task", "arm", "seed" and "share"
Column = dict[str, dict[int, float]]  # scores of each arm and seed
Measured = dict[tuple[str, float], Column]  # of each task and share of the labels
MINILM = "MiniLM-L6"
ALL_ARMS = {**ARMS, MINILM: Arm()}
SPLITS = ("dev", "test")


@lru_cache(maxsize=1)  # spaCy needs a minute for the spans of twenty thousand Docs
def read_corpora(folder: Path) -> dict[str, list[Doc]]:
    """The Docs of a task's .spacy files, to learn from and to be scored, with one vocab."""
    vocab = English().vocab
    return {each: read_docs(vocab, folder / f"{each}.spacy") for each in ("train", *SPLITS)}


def draw(docs: list[Doc], share: float, seed: int) -> list[Doc]:
    """A share of the Docs, at least one, in their order."""
    if share == 1:
        return docs
    chosen = random.Random(seed).sample(range(len(docs)), max(1, round(share * len(docs))))
    return [docs[i] for i in sorted(chosen)]


def train(config: Config, docs: list[Doc]) -> Language:
    """A pipeline after the last step of its config, with the vocab of the Docs."""
    settings = registry.resolve(config.interpolate()["training"], schema=ConfigSchemaTraining)
    fix_random_seed(settings["seed"])
    nlp = load_model_from_config(config, vocab=docs[0].vocab)

    def corpus(nlp: Language) -> list[Example]:
        return [make_example(doc) for doc in docs]

    examples = corpus(nlp)  # once for all components
    nlp.initialize(lambda: examples)
    batches = create_train_batches(nlp, corpus, settings["batcher"], 0)
    steps, dropout = settings["max_steps"] + 1, settings["dropout"]
    train_for(nlp, settings["optimizer"], batches, dropout, steps)
    return nlp


def measure(
    unit: Unit, corpora: Path, weights: str, steps: int, others: Path | None = None
) -> Unit:
    """Train once: all scores of both splits, the seconds that it took, and the mixes learned.

    Args:
        unit: what is trained.
        corpora: output of `write_corpus` for each task.
        weights: of the biLM.
        steps: of the training; 0: those of the task.
        others: directory of another model's vectors, for its arm.
    """
    task = TASKS[unit["task"]]
    docs = read_corpora(corpora / unit["task"])
    arm = "without" if unit["arm"] == MINILM else unit["arm"]
    config = make_config(unit["task"], arm, weights=weights, seed=unit["seed"], steps=steps)
    if unit["arm"] == MINILM:
        vectors = {"@architectures": "benchmarks.Embedded.v1", "model": "minilm"}
        config["components"][task.component]["model"]["tok2vec"] |= {
            "@architectures": "spacy-elmo.Tok2Vec.v1", "elmo": {**vectors, "path": str(others)}
        }  # fmt: skip
    start = time.perf_counter()
    nlp = train(config, draw(docs["train"], unit["share"], unit["seed"]))
    seconds = time.perf_counter() - start
    found: Unit = {split: scores(nlp, task, docs[split]) for split in SPLITS}
    learned = [mix for mix in mixes(nlp) if mix.component == task.component]
    return {**found, "seconds": seconds, "mixes": learned}


def scores(nlp: Language, task: Task, docs: list[Doc]) -> dict[str, float]:
    """In percent: those of a task, and its main one as ``score``."""
    found = nlp.evaluate([make_example(doc) for doc in docs])
    prefix = task.score.partition("_")[0]
    kept = {name: x for name, x in found.items() if name.startswith((prefix, "coref"))}
    kept = {"score": found[task.score], **kept}
    return {name: 100 * value for name, value in kept.items() if isinstance(value, float)}


def units(arguments: argparse.Namespace) -> Iterator[Unit]:
    """What there is to measure: seed by seed, and all of a task at once, whose Docs are kept."""
    arms = arguments.arms or [*ARMS, *([MINILM] if arguments.embedded else [])]
    for seed, task, share, arm in itertools.product(
        arguments.seeds, arguments.tasks, arguments.shares, arms
    ):
        yield {"task": task, "arm": arm, "seed": seed, "share": share}


def run(arguments: argparse.Namespace) -> None:
    results, weights = Results(arguments.out), fingerprint(arguments.weights)
    for unit in units(arguments):
        write_corpus(arguments.corpora / unit["task"], unit["task"], arguments.data)
        given = arguments.corpora, arguments.weights, arguments.steps, arguments.embedded
        of = None if ALL_ARMS[unit["arm"]] == Arm() else weights
        other = {"max_steps": arguments.steps} if arguments.steps else {}
        results.get(PART, {**unit, **other}, of, partial(measure, unit, *given))


def measured(results: Results, weights: str) -> Measured:
    """The scores of each task and share of the labels, on the test sets."""
    found: Measured = defaultdict(dict)
    for unit, result in results.of(PART, weights):
        column = found[unit["task"], unit["share"]]
        column.setdefault(unit["arm"], {})[unit["seed"]] = result["test"]["score"]
    return found


def lines(found: Measured, arms: Sequence[str]) -> Iterator[str]:
    """A table with a row for each task where all arms are measured with all labels.

    A cell is the mean of the seeds, half their range, and the error reduction from the same seeds
    without ELMo; the last column is the paper's.
    """
    yield "| | " + " | ".join(arms) + " | paper |"
    yield "|---" * (len(arms) + 2) + "|"
    for name, task in TASKS.items():
        column = found.get((name, 1), {})
        if column.keys() >= set(arms):
            cells = [cell(column[arm], column["without"], arm != "without") for arm in arms]
            paper = ""
            if task.without is not None and task.with_elmo is not None:
                gone = reduction(task.without, task.with_elmo)
                paper = f"{task.without} → {task.with_elmo}, {gone}"
            yield f"| {task.title} | {' | '.join([*cells, paper])} |"


def cell(seeds: dict[int, float], without: dict[int, float], has_elmo: bool) -> str:
    scores = list(seeds.values())
    text = f"{statistics.mean(scores):.1f}"
    if len(scores) > 1:
        text += f"±{(max(scores) - min(scores)) / 2:.1f}"
    both = seeds.keys() & without.keys()
    if has_elmo and both:
        before, after = (statistics.mean(of[seed] for seed in both) for of in (without, seeds))
        text += f", {reduction(before, after)}"
    return text


def reduction(before: float, after: float) -> str:
    return f"{error_reduction(before, after):+.0f}%".replace("-", "−")


def main() -> None:
    parser = make_parser(__doc__.split("\n")[0])
    default = Path(tempfile.gettempdir()) / "six_tasks"
    parser.add_argument("--corpora", type=Path, default=default, help="folder of .spacy files")
    parser.add_argument("--embedded", type=Path, help="directory of MiniLM's vectors")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--arms", nargs="+", choices=ALL_ARMS, help="default: all that can run")
    parser.add_argument("--shares", nargs="+", type=float, default=[1.0])
    parser.add_argument("--steps", type=int, default=0, help="0: those of each task")
    parser.add_argument("--weights", default="en_sm", help="of the biLM (default: en_sm)")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
