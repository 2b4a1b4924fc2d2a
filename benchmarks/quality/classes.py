"""Classes of texts: means of vectors in scikit-learn, counted words, or `TextCatLinear`?

    python benchmarks/quality/classes.py --data DATA [--tasks …] [--texts 10 40] [--steps …]

Of each class, some texts are drawn to learn from, as in `downstream.py`. A logistic regression
reads the means of ELMo's vectors (`doc._.elmo`, rows of length 1), tf-idf, and both, with the C
that is best for the dev set, and with scikit-learn's default. `TextCatLinear` takes a number of
steps. Printed are accuracies on the same test texts: the mean of the seeds, and each.
"""

from __future__ import annotations

import argparse
import random
import statistics
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from arms import ARMS, LINEAR
from downstream import train
from scipy.sparse import csr_matrix, hstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from spacy.training import Example
from tasks import TASKS, Task, examples_of, sample
from text_means import label

from spacy_elmo import Encoder
from spacy_elmo.text.readers import blank

C = (1.0, 10.0, 100.0)
N_DEV, N_TEST = 1000, 2000  # texts, the same for all seeds

Parts = tuple[Any, Any, Any]  # features of training, dev and test texts


def read(task: Task, data: Path) -> dict[str, list[Example]]:
    """Examples of each split."""
    nlp = blank(task.lang)
    found = {split: examples_of(nlp, task, data, split) for split in ("train", "dev", "test")}
    for split, most in (("dev", N_DEV), ("test", N_TEST)):
        found[split] = random.Random(0).sample(found[split], min(most, len(found[split])))
    return found


def features(texts: list[list[str]], means: Parts) -> dict[str, Parts]:
    """By row of the table."""
    counter = TfidfVectorizer(sublinear_tf=True)
    counted = (counter.fit_transform(texts[0]), *map(counter.transform, texts[1:]))
    both = tuple(hstack(pair, format="csr") for pair in zip(counted, means, strict=True))
    return {"means of ELMo": means, "tf-idf": counted, "both": both}


def accuracies(x: Any, y: list[str], others: Any, gold: list[str]) -> list[float]:
    """One for each C, in percent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [
            100 * LogisticRegression(C=c, max_iter=200).fit(x, y).score(others, gold) for c in C
        ]


def regression(parts: Parts, labels: list[list[str]]) -> tuple[float, float]:
    """Accuracies on the test texts: with the C that is best for the dev texts, and with C = 1."""
    x, dev, test = parts
    y, *gold = labels
    on_dev, on_test = (accuracies(x, y, *pair) for pair in zip((dev, test), gold, strict=True))
    return on_test[int(np.argmax(on_dev))], on_test[C.index(1)]


def linear(task: Task, size: int, seed: int, data: Path, steps: int, test: list[Example]) -> float:
    nlp = train(task, size, ARMS[LINEAR], seed, data, {}, max_steps=steps)
    docs = nlp.pipe(nlp.make_doc(example.text) for example in test)
    right = [label(doc) == label(each.reference) for doc, each in zip(docs, test, strict=True)]
    return 100 * statistics.mean(right)


def measure(data: Path, name: str, n_texts: int, seed: int, steps: int) -> dict[str, float]:
    """Accuracies by row, of classes with so many texts each."""
    task, splits = TASKS[name], read(TASKS[name], data)
    size = n_texts * len({label(example.reference) for example in splits["train"]})
    splits["train"] = sample(splits["train"], size, random.Random(seed), by_label=True)
    texts = [[example.reference.text for example in split] for split in splits.values()]
    labels = [[label(example.reference) for example in split] for split in splits.values()]
    means: Any = tuple(map(csr_matrix, map(normalize, map(Encoder(level="documents"), texts))))
    found: dict[str, float] = {}
    for row, parts in features(texts, means).items():
        found[row], found[f"{row}, C = 1"] = regression(parts, labels)
    return {**found, "TextCatLinear": linear(task, size, seed, data, steps, splits["test"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=["intents", "requests"])
    parser.add_argument("--texts", nargs="+", type=int, default=[10, 40], help="of each class")
    parser.add_argument("--steps", type=int, default=1000, help="of TextCatLinear")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    arguments = parser.parse_args()
    for name in arguments.tasks:
        for n_texts in arguments.texts:
            one = partial(measure, arguments.data, name, n_texts, steps=arguments.steps)
            found = [one(seed) for seed in arguments.seeds]
            for row in found[0]:
                each = [values[row] for values in found]
                numbers = " ".join(f"{value:.1f}" for value in (statistics.mean(each), *each))
                print(f"{name:10} {n_texts:3} {row:20} {numbers}", flush=True)


if __name__ == "__main__":
    main()
