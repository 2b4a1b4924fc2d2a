"""What ELMo costs a training: seconds of an epoch, with and without the cache of layers.

    python benchmarks/speed/training.py DATA [--task tagger] [--size 2000] [--epochs 5]

Trains the same component with HashEmbedCNN alone, and with a frozen ELMo concatenated to it: layers
cached as they are, cached in half precision, and not cached. All take one epoch in turn; what is
printed is the median of the epochs after the first, the ratio to HashEmbedCNN's, and the score on
the test set at the end. DATA is that of `tasks.py`.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.training import Example
from spacy.training.batchers import minibatch_by_words
from spacy.util import fix_random_seed
from thinc.api import Adam

sys.path.append(str(Path(__file__).parents[1] / "quality"))

from arms import ARMS, make_nlp
from tasks import TASKS, Task, examples_of

MIX = "ELMo, mix (λ = 0.001)"
SIDES: dict[str, tuple[str, dict[str, Any]]] = {
    "HashEmbedCNN": ("HashEmbedCNN", {}),
    "ELMo": (MIX, {}),
    "ELMo, no cache": (MIX, {"cache_mb": 0}),
}


class Training:
    """One of those that take turns."""

    def __init__(self, name: str, task: Task, data: Path, size: int):
        name, settings = SIDES[name]
        fix_random_seed(0)
        arm = ARMS[name]
        self.nlp = make_nlp(task, arm if arm.elmo is None else arm._replace(elmo=settings), {})
        every = examples_of(self.nlp, task, data, "train")
        self.examples = random.Random(0).sample(every, min(size, len(every)))
        self.nlp.initialize(lambda: self.examples)
        self.optimizer = Adam(0.001, L2=0.01, grad_clip=1.0, L2_is_weight_decay=True)
        self.seconds: list[float] = []

    def epoch(self, number: int, batch_words: int) -> None:
        fix_random_seed(number)
        shuffled = random.Random(number).sample(self.examples, len(self.examples))
        batches = list(minibatch_by_words(shuffled, batch_words))
        start = time.perf_counter()
        for batch in batches:
            update(self.nlp, batch, self.optimizer)
        self.seconds.append(time.perf_counter() - start)


def update(nlp: Language, batch: list[Example], optimizer: Any) -> None:
    """A step as `spacy train` makes it."""
    nlp.update(batch, sgd=False, drop=0.1)  # type: ignore[arg-type]
    for _, pipe in nlp.pipeline:
        pipe.finish_update(optimizer)  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description="What ELMo costs a training.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--task", choices=TASKS, default="tagger")
    parser.add_argument("--size", type=int, default=2000, help="training sentences")
    parser.add_argument("--epochs", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.epochs < 2:
        parser.error("--epochs: the first is not counted, so give 2 or more")
    task = TASKS[arguments.task]
    trainings = {name: Training(name, task, arguments.data, arguments.size) for name in SIDES}
    for number in range(arguments.epochs):
        for training in trainings.values():
            training.epoch(number, task.batch_words)
    later = {name: statistics.median(t.seconds[1:]) for name, t in trainings.items()}
    n_words = sum(len(example) for example in trainings["HashEmbedCNN"].examples)
    print(f"{arguments.task}, {n_words} words an epoch")
    for name, training in trainings.items():
        test = examples_of(training.nlp, task, arguments.data, "test")
        score = 100 * training.nlp.evaluate(test)[task.score]
        first, ratio = training.seconds[0], later[name] / later["HashEmbedCNN"]
        print(
            f"{name:22} first epoch {first:6.1f} s, later {later[name]:6.1f} s, "
            f"{ratio:.2f} × HashEmbedCNN; {task.score} {score:.2f}"
        )


if __name__ == "__main__":
    main()
