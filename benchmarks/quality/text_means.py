"""Text classes by logistic regression on the means of frozen layers, and by counted words.

    python benchmarks/quality/text_means.py DATA [--weights en_sm] [--tasks …] [--seeds …]
        [--embedded DIR]

The classifier that is simplest to build from frozen vectors: a text is the mean of its words'
vectors, in one layer or in all, and the classes are learned by one linear map. Beside it, the words
of the text by tf-idf, and both together; and with --embedded, the output of `peers/embed.py`, the
means of MiniLM. Tasks, and the training texts of a seed, are those of `downstream.py`, with its
smallest numbers of texts. Means are standardised by the training texts; the regularization of each
row is chosen on the dev set.
Printed are accuracies on the test set, means of the seeds with the lowest and the highest; and
which row the dev set chooses, whose test score is the one to compare.

spaCy users have `spacy-elmo.TextCatLinear.v1`, an arm of `downstream.py`.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from arms import NEEDED
from embedded import places
from probes import regression
from similarity import tf_idf
from spacy.language import Language
from spacy.tokens import Doc
from tasks import TASKS, examples_of, sample

from spacy_elmo.text.readers import blank

L2 = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # of the mean loss; rows have a length of about 1
SPLITS = ("train", "dev", "test")
CLASSIFICATION = [name for name, task in TASKS.items() if task.factory == "textcat"]

Parts = tuple[np.ndarray, ...]  # features ``(n, D)`` of the texts of each split


def make_nlp(weights: str, lang: str) -> Language:
    nlp = blank(lang, "spacy.Tokenizer.v1")
    model = {"@architectures": "spacy-elmo.Elmo.v1", "weights": weights}
    nlp.add_pipe("elmo", config={"store": ["layers"], "model": model})
    nlp.initialize()
    return nlp


def layer_means(nlp: Language, docs: list[Doc]) -> np.ndarray:
    """``(n, L + 1, 2P)``"""
    words = (Doc(nlp.vocab, words=[token.text for token in doc]) for doc in docs)
    return np.stack([doc._.elmo_layers.mean(axis=1) for doc in nlp.pipe(words)])


def embedded_means(folder: Path, docs: list[Doc], model: str = "minilm") -> np.ndarray:
    """``(n, n_layers, width)``"""
    layers, known = np.load(folder / f"{model}.npy", mmap_mode="r"), places(str(folder))
    starts = [known[tuple(token.text for token in doc)] for doc in docs]
    pairs = zip(starts, docs, strict=True)
    return np.stack([layers[:, i : i + len(d)].mean(axis=1, dtype="float32") for i, d in pairs])


def standardised(train: np.ndarray, *others: np.ndarray) -> Parts:
    """By the training texts, with rows of length 1 on average."""
    mean, spread = train.mean(axis=0), train.std(axis=0) + 1e-6
    return tuple((x - mean) / spread / train.shape[1] ** 0.5 for x in (train, *others))


def by_layer(means: list[np.ndarray]) -> dict[str, Parts]:
    """Of training, dev and test texts: each layer, and all of them."""
    n_layers = means[0].shape[1]
    found = {f"layer {i}": standardised(*(x[:, i] for x in means)) for i in range(n_layers)}
    return found | {"all layers": standardised(*(x.reshape(len(x), -1) for x in means))}


def features(means: list[np.ndarray], docs: list[list[Doc]]) -> dict[str, Parts]:
    """Of training, dev and test texts."""
    found = by_layer(means)
    train, others = tf_idf(docs[0], docs[1] + docs[2])
    found["tf-idf"] = (train, *np.split(others, [len(docs[1])]))
    both = zip(found["all layers"], found["tf-idf"], strict=True)
    found["all layers and tf-idf"] = tuple(np.concatenate(pair, axis=1) for pair in both)
    return found


def scores(parts: Parts, labels: list[list[str]]) -> tuple[float, float]:
    """Accuracies of the dev and the test set, with the regularization best on the dev set."""
    names = sorted(set(labels[0]))
    train, *others = map(torch.from_numpy, parts)
    y = torch.tensor([names.index(label) for label in labels[0]])
    found = []
    for l2 in L2:
        weights = regression(train, y, len(names), l2)
        chosen = ((x @ weights[:-1] + weights[-1]).argmax(dim=1) for x in others)
        right = (
            [names[i] == label for i, label in zip(each, gold, strict=True)]
            for each, gold in zip(chosen, labels[1:], strict=True)
        )
        found.append(tuple(100 * statistics.mean(each) for each in right))
    dev, test = max(found, key=lambda pair: pair[0])
    return dev, test


def label(doc: Doc) -> str:
    return max(doc.cats, key=doc.cats.__getitem__)


def measure(
    weights: str, data: Path, name: str, seeds: Sequence[int], embedded: Path | None = None
) -> dict[str, list[tuple[float, float]]]:
    """Accuracies on the dev and the test set of each row, one pair for each seed.

    Args:
        weights: of the biLM.
        data: see `tasks`.
        name: of a task of `CLASSIFICATION`.
        seeds: of the training texts.
        embedded: output of `peers/embed.py`; MiniLM's rows then, instead of the biLM's.
    """
    task, size = TASKS[name], next(iter(TASKS[name].steps))
    nlp = make_nlp(weights, task.lang) if embedded is None else blank(task.lang)
    read = partial(layer_means, nlp) if embedded is None else partial(embedded_means, embedded)
    splits = [examples_of(nlp, task, data, split) for split in SPLITS]
    fixed = [[example.reference for example in split] for split in splits[1:]]
    fixed_means = [read(docs) for docs in fixed]
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for seed in seeds:
        chosen = sample(splits[0], size, random.Random(seed), task.by_label)
        docs = [[example.reference for example in chosen], *fixed]
        means = [read(docs[0]), *fixed_means]
        labels = [[label(doc) for doc in split] for split in docs]
        rows = by_layer(means) if embedded is not None else features(means, docs)
        for row, parts in rows.items():
            found[row].append(scores(parts, labels))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--weights", default="en_sm", help="of the biLM (default: en_sm)")
    english = [name for name in CLASSIFICATION if TASKS[name].lang == "en"]
    parser.add_argument("--tasks", nargs="+", choices=CLASSIFICATION, default=english)
    parser.add_argument("--embedded", type=Path, help=NEEDED["embedded"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    args = parser.parse_args()
    for name in args.tasks:
        found = measure(args.weights, args.data, name, args.seeds)
        if args.embedded is not None:
            others = measure(args.weights, args.data, name, args.seeds, args.embedded)
            found |= {f"MiniLM, {row}": pairs for row, pairs in others.items()}
        size = next(iter(TASKS[name].steps))
        print(f"\n| {name}, {size} texts | dev | test |\n|---|---|---|")
        for row, pairs in found.items():
            cells = (
                f"{statistics.mean(s):.1f} ({min(s):.1f}–{max(s):.1f})"
                for s in zip(*pairs, strict=True)
            )
            print(f"| {row} |", " | ".join(cells), "|", flush=True)
        best = max(found, key=lambda row: statistics.mean(dev for dev, _ in found[row]))
        print(f"\nBest on the dev set: {best}")


if __name__ == "__main__":
    main()
