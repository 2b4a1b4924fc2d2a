"""What a tagger, a parser, NER and text classifiers gain from ELMo, and from its alternatives.

    python benchmarks/quality/downstream.py OUT --data DATA [--tasks …] [--arms …] [--sizes …]
        [--split dev]

Every arm of a task has the same architecture around it, the same sentences, seeds, batches and
steps, unless its name says otherwise; nothing is selected by its scores, which are those of the
test set after the last step. DATA holds the data of `tasks.py`, the arms are those of `arms.py`.
The recipes in project/configs have the same models, learning rate and dropout; their batches grow,
their weight decay is a tenth of the one here, and the dev set selects the best model. Sizes are
numbers of training sentences, or shares of them, as for learning curves:
``--sizes 1% 3% 10% 30% all``.

The arms that users would pick instead need files. ``--static``: vectors as `spacy init vectors`
writes them, of the ELMo vectors' width and trained on text of the same kinds as the biLM; ours were
made from 23 million words by

    floret.train_unsupervised(TEXT, model="cbow", mode="floret", hashCount=2, bucket=50000, minn=4,
                              maxn=5, minCount=5, dim=256, epoch=5).save_floret_vectors(FILE)
    python -m spacy init vectors en FILE VECTORS --mode floret

``--pretrained``: the output of `pretrained.py`. ``--embedded``: the output of `peers/embed.py`.
``--adapted``: the output of `adapted.py`, a biLM for each task. Arms whose file is not given are
left out.

OUT is a file of `results.py`, such as benchmarks/results/en_sm.jsonl, which has ours. Results that
are there are not computed again. The tables and pictures of the page are those of `evidence.py`,
which measures the same by part.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from arms import (
    ARMS,
    Arm,
    Files,
    add_file_options,
    fits,
    given_files,
    load_pretrained,
    make_nlp,
)
from results import Results, fingerprint, make_parser
from spacy.language import Language
from spacy.training.loop import train_while_improving
from spacy.util import fix_random_seed
from tasks import ENGLISH, TASKS, Size, Task, batches, examples_of, parse_size, sample
from thinc.api import Adam

from spacy_elmo import mixes

PART = "tasks"  # of the results
DROPOUT = 0.1  # of the task's own layers


def train(
    task: Task,
    size: Size,
    arm: Arm,
    seed: int,
    data: Path,
    files: Files,
    weights: str = "en_sm",
    max_steps: int | None = None,
) -> Language:
    """A pipeline trained on a sample, the same for all arms and another one for each seed.

    Args:
        task, size, arm, seed: what is trained.
        data: see `tasks`.
        files: see `arms`.
        weights: of the biLM.
        max_steps: fewer steps than those of the task.
    """
    fix_random_seed(seed)
    nlp = make_nlp(task, arm, files, weights)
    every = examples_of(nlp, task, data, "train")
    chosen = sample(every, size, random.Random(seed), task.by_label)
    nlp.initialize(lambda: chosen)
    load_pretrained(nlp, arm, files)
    optimizer = Adam(
        arm.learn_rate, L2=0.01, grad_clip=1.0, L2_is_weight_decay=True, use_averages=False
    )
    steps = max_steps or arm.times * task.n_steps(len(chosen), len(every)) + 1
    train_for(nlp, optimizer, batches(chosen, task.batch_words, seed), DROPOUT, steps)
    return nlp


def train_for(
    nlp: Language, optimizer: Any, batches: Iterable[Any], dropout: float, n_steps: int
) -> None:
    """Train an initialized pipeline for so many steps; nothing is selected.

    spaCy counts from 0 to the last one: its ``max_steps`` are one fewer.
    """
    steps = train_while_improving(
        nlp, optimizer, batches, lambda: (0.0, {}), dropout=dropout, eval_frequency=10**9,
        accumulate_gradient=1, patience=0, max_steps=0, exclude=[],
        annotating_components=[], before_update=None,
    )  # fmt: skip
    for _ in itertools.islice(steps, n_steps):
        pass


def measure(
    task: Task,
    size: Size,
    arm: Arm,
    seed: int,
    data: Path,
    split: str = "test",
    **how: Any,
) -> dict[str, Any]:
    """Train once: the score in percent, the seconds that it took, and the mixes learned. For the
    arguments see `train`."""
    start = time.perf_counter()
    nlp = train(task, size, arm, seed, data, **how)
    seconds = time.perf_counter() - start
    scores = nlp.evaluate(examples_of(nlp, task, data, split))
    learned = [mix for mix in mixes(nlp) if mix.component == task.factory]
    return {"score": 100 * scores[task.score], "seconds": seconds, "mixes": learned}


Unit = dict[str, Any]  # "task", "size", "arm" and "seed"


def units(
    tasks: Iterable[str], arms: Iterable[str], sizes: Iterable[Size], seeds: Iterable[int],
    files: Collection[str] = (),
) -> Iterator[Unit]:  # fmt: skip
    """What there is to measure, seed by seed.

    Args:
        tasks, arms, seeds: all are combined, but for arms that do not fit.
        sizes: none: those of each task.
        files: keys of `NEEDED`; arms that need another one are left out.
    """
    sizes = list(sizes)
    for seed, name in itertools.product(seeds, tasks):
        for size, arm in itertools.product(sizes or TASKS[name].steps, arms):
            if fits(TASKS[name], ARMS[arm]) and ARMS[arm].needs in {"", *files}:
                yield {"task": name, "size": size, "arm": arm, "seed": seed}


def run(arguments: argparse.Namespace) -> None:
    results, weights = Results(arguments.out), fingerprint(arguments.weights)
    how = {"max_steps": arguments.max_steps, "split": arguments.split}
    other = {name: value for name, value in how.items() if value not in (None, "test")}
    given = given_files(arguments, "")
    for unit in units(arguments.tasks, arguments.arms, arguments.sizes, arguments.seeds, given):
        arm, files = ARMS[unit["arm"]], given_files(arguments, unit["task"])
        function = partial(
            measure, TASKS[unit["task"]], unit["size"], arm, unit["seed"], arguments.data,
            files=files, weights=arguments.weights, **how,
        )  # fmt: skip
        of = weights if arm.elmo is not None else None
        results.get(PART, {**unit, **other}, of, function)


def main() -> None:
    parser = make_parser(__doc__.split("\n")[0])
    parser.add_argument("--weights", default="en_sm", help="of the biLM (default: en_sm)")
    add_file_options(parser)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=ENGLISH)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    sizes = {"nargs": "+", "type": parse_size, "default": []}
    parser.add_argument("--sizes", **sizes, help="default: those of each task")
    parser.add_argument("--max-steps", type=int, help="only try it, with so many steps")
    parser.add_argument("--split", choices=["dev", "test"], default="test")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
