"""Text classes by logistic regression on the means of frozen layers, and by counted words.

The classifier that is simplest to build from frozen vectors: a text is the mean of its words'
vectors in all layers, and the classes are learned by one linear map. Beside it, the words of the
text by tf-idf, and both together; or the means of MiniLM, from the output of `peers/embed.py`.
Tasks, and the training texts of a seed, are those of `downstream.py`, with its smallest numbers of
texts. Means are standardised by the training texts; the regularization is chosen on the dev set.

spaCy users have `spacy-elmo.TextCatLinear.v1`, an arm of `downstream.py`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from embedded import Vectors
from similarity import make_nlp, tf_idf
from spacy.language import Language
from spacy.tokens import Doc
from tasks import TASKS, examples_of, sample
from torch.nn import functional as F

from spacy_elmo.text.readers import blank

L2 = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # of the mean loss; rows have a length of about 1
MAX_STEPS = 60
SPLITS = ("train", "dev", "test")

Parts = tuple[np.ndarray, ...]  # features ``(n, D)`` of the texts of each split


class Regression:
    """A multinomial logistic regression by L-BFGS, with a penalty on the mean loss."""

    def __init__(self, l2: float):
        self.l2 = l2

    def fit(self, x: np.ndarray, labels: Sequence[str]) -> Regression:
        self.names, targets = np.unique(labels, return_inverse=True)
        inputs, y = torch.from_numpy(x), torch.from_numpy(targets)
        weights = torch.zeros(x.shape[1] + 1, len(self.names), requires_grad=True)
        optimizer = torch.optim.LBFGS(
            [weights], max_iter=MAX_STEPS, history_size=10, line_search_fn="strong_wolfe"
        )

        def loss() -> torch.Tensor:
            optimizer.zero_grad()
            value = F.cross_entropy(inputs @ weights[:-1] + weights[-1], y)
            value = value + self.l2 * weights[:-1].square().sum()
            value.backward()
            return value

        optimizer.step(loss)
        self.weights = weights.detach().numpy()
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.names[(x @ self.weights[:-1] + self.weights[-1]).argmax(axis=1)]


def accuracy(model: Regression, x: np.ndarray, labels: Sequence[str]) -> float:
    """In percent."""
    return 100 * float(np.mean(model.predict(x) == np.array(labels)))


def layer_means(nlp: Language, docs: list[Doc]) -> np.ndarray:
    """``(n, L + 1, 2P)``"""
    words = (Doc(nlp.vocab, words=[token.text for token in doc]) for doc in docs)
    return np.stack([doc._.elmo_layers.mean(axis=1) for doc in nlp.pipe(words)])


def embedded_means(vectors: Vectors, docs: list[Doc]) -> np.ndarray:
    """``(n, n_layers, width)``"""
    return np.stack([vectors(token.text for token in doc).mean(axis=1) for doc in docs])


def standardised(train: np.ndarray, *others: np.ndarray) -> Parts:
    """By the training texts, with rows of length 1 on average."""
    mean, spread = train.mean(axis=0), train.std(axis=0) + 1e-6
    return tuple((x - mean) / spread / train.shape[1] ** 0.5 for x in (train, *others))


def features(means: list[np.ndarray], docs: list[list[Doc]]) -> dict[str, Parts]:
    """Of training, dev and test texts."""
    layers = standardised(*(x.reshape(len(x), -1) for x in means))
    train, others = tf_idf(docs[0], docs[1] + docs[2])
    counted = (train, *np.split(others, [len(docs[1])]))
    both = tuple(np.concatenate(pair, axis=1) for pair in zip(layers, counted, strict=True))
    return {"all layers": layers, "tf-idf": counted, "all layers and tf-idf": both}


def scores(parts: Parts, labels: list[list[str]]) -> tuple[float, float]:
    """Accuracies of the dev and the test set, with the regularization best on the dev set."""
    found = []
    for l2 in L2:
        model = Regression(l2).fit(parts[0], labels[0])
        dev, test = (accuracy(model, parts[i], labels[i]) for i in (1, 2))
        found.append((dev, test))
    return max(found, key=lambda pair: pair[0])


def label(doc: Doc) -> str:
    return max(doc.cats, key=doc.cats.__getitem__)


def measure(
    weights: str, data: Path, name: str, seed: int, embedded: Path | None = None
) -> dict[str, list[tuple[float, float]]]:
    """Accuracies on the dev and the test set of each row, as a list of one pair.

    Args:
        weights: of the biLM.
        data: see `tasks`.
        name: of a task that classifies texts.
        seed: of the training texts.
        embedded: output of `peers/embed.py`; MiniLM's means then, instead of the biLM's.
    """
    task, size = TASKS[name], next(iter(TASKS[name].steps))
    if embedded is None:
        read = partial(layer_means, make_nlp(weights, vectors="vocab"))
    else:
        read = partial(embedded_means, Vectors(embedded))
    nlp = blank(task.lang, "spacy.Tokenizer.v1")
    train, *fixed = (examples_of(nlp, task, data, split) for split in SPLITS)
    chosen = sample(train, size, random.Random(seed), task.by_label)
    docs = [[example.reference for example in split] for split in (chosen, *fixed)]
    labels = [[label(doc) for doc in split] for split in docs]
    rows = features([read(split) for split in docs], docs)
    if embedded is not None:
        rows = {"all layers": rows["all layers"]}
    return {row: [scores(parts, labels)] for row, parts in rows.items()}
