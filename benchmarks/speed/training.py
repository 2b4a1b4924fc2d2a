"""What ELMo costs a training: its seconds with ELMo over those without.

    python benchmarks/speed/training.py DATA [--components tagger,parser] [--steps 600]

Trains the same components on 500 sentences of UD English-EWT, in Docs of ten, as `spacy init
config` writes them and as `elmo add` does. Both take an epoch in turn. Printed are the seconds of
one core for all steps, and their ratio. DATA is that of `tasks.py`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from itertools import islice
from pathlib import Path

from spacy.language import Language
from spacy.training import Example
from spacy.training.batchers import minibatch_by_words
from spacy.util import fix_random_seed, load_model_from_config
from thinc.api import Adam

sys.path.append(str(Path(__file__).parents[1] / "quality"))

from recipes import ADDED, TASKS, WITHOUT, examples, make_config

TASK = TASKS["English, 500"]
SIDES = {"without ELMo": WITHOUT, "with ELMo": ADDED}


class Training:
    """One of the two that take turns."""

    def __init__(self, name: str, components: list[str], data: Path):
        fix_random_seed(0)
        config = make_config(components, SIDES[name])
        self.nlp = load_model_from_config(config, auto_fill=True)
        self.examples = examples(self.nlp, TASK, data, "train")
        self.nlp.initialize(lambda: self.examples)
        self.optimizer = Adam(0.001, L2=0.01, grad_clip=1.0, use_averages=SIDES[name] == ADDED)
        self.seconds, self.steps = 0.0, 0

    def epoch(self, number: int, steps: int) -> None:
        """At most so many steps in all."""
        shuffled = random.Random(number).sample(self.examples, len(self.examples))
        batches = minibatch_by_words(shuffled, 400)
        start = time.process_time()
        for batch in islice(batches, steps - self.steps):
            update(self.nlp, batch, self.optimizer)
            self.steps += 1
        self.seconds += time.process_time() - start


def update(nlp: Language, batch: list[Example], optimizer: Adam) -> None:
    """A step as `spacy train` makes it."""
    nlp.update(batch, sgd=False, drop=0.1)  # type: ignore[arg-type]
    for _, pipe in nlp.pipeline:
        pipe.finish_update(optimizer)  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description="What ELMo costs a training.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--components", default="tagger,parser")
    parser.add_argument("--steps", type=int, default=600)
    options = parser.parse_args()
    names = options.components.split(",")
    trainings = {name: Training(name, names, options.data) for name in SIDES}
    number = 0
    while any(training.steps < options.steps for training in trainings.values()):
        for training in trainings.values():
            training.epoch(number, options.steps)
        number += 1
    without = next(iter(trainings.values())).seconds
    print(f"{options.components}, {options.steps} steps, {number} epochs")
    for name, training in trainings.items():
        print(f"{name:12} {training.seconds:6.1f} s, {training.seconds / without:.2f}")


if __name__ == "__main__":
    main()
