"""What the README's commands give: a pipeline trained with ELMo and without it, and tested.

    python benchmarks/quality/readme_commands.py OUT --data DATA [--tasks tagger] [--sizes 500]

`COMMANDS` are those of the README, run as they are there, on files that this script makes: the
training sentences that `downstream.py` draws for the same size and seed, and the dev and test sets.
Other than there, spaCy's tokenizer finds the words, the batches and the number of steps are those
of `spacy init config`, and the dev set selects the model. Without ELMo, the second command is left
out. Results that are in OUT are not computed again, so a run that was stopped is continued, and
several at once may share the work. `--max-steps` ends each training earlier.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import spacy
from results import Results, fingerprint
from spacy.tokens import DocBin
from tasks import TASKS, Size, Task, examples_of, parse_size, sample

ADD = "python -m spacy elmo add plain.cfg config.cfg"
COMMANDS = f"""\
python -m spacy init config plain.cfg --lang en --pipeline tagger
{ADD}
python -m spacy train config.cfg --output out --paths.train train.spacy --paths.dev dev.spacy
python -m spacy evaluate out/model-best test.spacy --output metrics.json
"""
WITHOUT, WITH = "without ELMo", "with ELMo"


def write_data(folder: Path, task: Task, size: Size, seed: int, data: Path) -> None:
    """The files that the commands read."""
    nlp = spacy.blank(task.lang)
    for split in ("train", "dev", "test"):
        examples = examples_of(nlp, task, data, split)
        if split == "train":
            examples = sample(examples, size, random.Random(seed), task.by_label)
        docs = [example.reference for example in examples]
        DocBin(docs=docs, store_user_data=True).to_disk(folder / f"{split}.spacy")


def commands(task: Task, arm: str, seed: int, weights: str, max_steps: int | None) -> list[str]:
    """The README's for a task, and for this run."""
    text = COMMANDS.replace("--pipeline tagger", f"--pipeline {task.factory}")
    text = text.replace("--lang en", f"--lang {task.lang}")
    if arm == WITHOUT:
        text = text.replace(f"{ADD}\n", "").replace("config.cfg", "plain.cfg")
    elif weights != "en_sm":
        text = text.replace(ADD, f"{ADD} --weights {shlex.quote(weights)}")
    steps = "" if max_steps is None else f" --training.max_steps {max_steps}"
    return text.replace("dev.spacy", f"dev.spacy --system.seed {seed}{steps}").splitlines()


def measure(
    task: Task, size: Size, arm: str, seed: int, data: Path, weights: str, max_steps: int | None
) -> dict[str, Any]:
    """Run the commands in a folder of their own: the score in percent, and the seconds."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, task, size, seed, data)
        for command in commands(task, arm, seed, weights, max_steps):
            arguments = [sys.executable, *shlex.split(command)[1:]]
            done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")
        metrics = json.loads((folder / "metrics.json").read_text(encoding="utf8"))
        meta = json.loads((folder / "out" / "model-best" / "meta.json").read_text(encoding="utf8"))
    return {
        "score": 100 * metrics[task.score],
        "dev": 100 * meta["performance"][task.score],
        "seconds": time.perf_counter() - start,
    }


def run(arguments: argparse.Namespace) -> None:
    results, weights = Results(arguments.out), arguments.weights
    of = fingerprint(weights)
    if Path(weights).exists():
        weights = str(Path(weights).resolve())  # the commands run elsewhere
    for seed, name in itertools.product(arguments.seeds, arguments.tasks):
        for size, arm in itertools.product(arguments.sizes or TASKS[name].steps, (WITHOUT, WITH)):
            unit = {"task": name, "size": size, "seed": seed, "max_steps": arguments.max_steps}
            results.read()  # what other processes have added
            if (found := results.find(arm, unit, of if arm == WITH else None)) is None:
                found = measure(
                    TASKS[name], size, arm, seed, arguments.data, weights, arguments.max_steps
                )
                results.add(arm, unit, of if arm == WITH else None, found)
            print(*unit.values(), arm, f"{found['score']:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="a file, to which results are added")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", default="en_sm", help="of the biLM (default: en_sm)")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=["tagger", "parser", "ner"])
    parser.add_argument("--sizes", nargs="+", type=parse_size, help="default: those of each task")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--max-steps", type=int, help="end each training earlier")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
