"""Which vector of a text serves scikit-learn, and how is it scaled?

    python benchmarks/quality/features.py --data DATA [--tasks …] [--seeds …]

A logistic regression learns from few texts, as in `downstream.py`, and reads the dev set: by
`doc.vector`, by `doc._.elmo`, by both, and by the mean and the maximum of all layers; each as it
is, with rows of length 1, with standardised columns and then rows of length 1, and these beside
tf-idf. Printed is the mean accuracy of the best C.
"""

from __future__ import annotations

import argparse
import random
import statistics
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import hstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from tasks import TASKS, examples_of, sample
from text_means import label, make_nlp

from spacy_elmo import Encoder

C = (1.0, 10.0, 100.0)
N_DEV = 1000  # texts
SCALERS = {
    "as it is": FunctionTransformer,
    "unit": Normalizer,
    "standardised, unit": lambda: make_pipeline(StandardScaler(), Normalizer()),
}

Vectors = dict[str, np.ndarray]  # by row of the table, each (n, dimensions)


def vectors(nlp: Any, texts: list[str]) -> Vectors:
    docs = list(nlp.pipe(texts))
    compared, mixed = np.stack([doc.vector for doc in docs]), Encoder(level="documents")(texts)
    return {
        "`doc.vector`": compared,
        "`doc._.elmo`": mixed,
        "both": np.concatenate([compared * np.linalg.norm(mixed, axis=1).mean(), mixed], 1),
        "mean of each layer": np.stack([doc._.elmo_layers.mean(1).ravel() for doc in docs]),
        "maximum of each layer": np.stack([doc._.elmo_layers.max(1).ravel() for doc in docs]),
    }


def accuracies(train: Any, y: list[str], dev: Any, gold: list[str]) -> list[float]:
    """One for each C, in percent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [
            100 * LogisticRegression(C=c, max_iter=200).fit(train, y).score(dev, gold) for c in C
        ]


def measure(data: Path, name: str, seed: int) -> dict[tuple[str, str], list[float]]:
    """Accuracies by row and scaling."""
    task = TASKS[name]
    nlp = make_nlp("en_sm", "en")
    every = examples_of(nlp, task, data, "train")
    few = sample(every, next(iter(task.steps)), random.Random(seed), task.by_label)
    splits = few, examples_of(nlp, task, data, "dev")[:N_DEV]
    texts, labels = (
        [[get(example.reference) for example in split] for split in splits]
        for get in (lambda doc: doc.text, label)
    )
    counter = TfidfVectorizer(sublinear_tf=True)
    counted = counter.fit_transform(texts[0]), counter.transform(texts[1])
    found = {("tf-idf", "alone"): accuracies(counted[0], labels[0], counted[1], labels[1])}
    of_train, of_dev = (vectors(nlp, each) for each in texts)
    for row in of_train:
        for how, make in SCALERS.items():
            scaler = make()
            pair = scaler.fit_transform(of_train[row]), scaler.transform(of_dev[row])
            found[row, how] = accuracies(pair[0], labels[0], pair[1], labels[1])
        both = [hstack(each, format="csr") for each in zip(counted, pair, strict=True)]
        found[row, "beside tf-idf"] = accuracies(both[0], labels[0], both[1], labels[1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=["subjectivity", "intents"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    for name in arguments.tasks:
        seeds = defaultdict(list)
        for seed in arguments.seeds:
            for key, each in measure(arguments.data, name, seed).items():
                seeds[key].append(each)
        for (row, how), each in seeds.items():
            means = list(map(statistics.mean, zip(*each, strict=True)))
            print(f"{name:12} {row:22} {how:18} {max(means):5.1f}  C = {C[np.argmax(means)]:g}")


if __name__ == "__main__":
    main()
