"""What each layer knows: logistic regressions on frozen layers.

A probe learns one linear map from a token's features to its label: universal and English
part-of-speech tags, dependency label (500 sentences of UD English-EWT), and entities (1,500
sentences of WNUT-17, as BIO tags, scored by the F1 of whole entities). Features are standardised
by the training tokens, and the regularization is chosen on the dev set; accuracies and F1 are
those of the test set. Seeds draw training samples. The layers can be those of another model, as
`peers/embed.py` has written them; then only "all" and a layer's number are features.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from embedded import Vectors
from similarity import make_nlp
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc
from spacy.training import Example, biluo_tags_to_spans, iob_to_biluo
from tasks import read_ewt, read_wnut
from torch.nn import functional as F

L2 = (1e-4, 1e-3, 1e-2, 1e-1)  # of the mean loss; chosen on the dev set
MAX_STEPS = 60


class Task(NamedTuple):
    """Sentences, how many to learn from, and a label per token."""

    read: Callable[[Path, str], object]
    size: int
    label: Callable[[Doc], list[str]]


class Elmo:
    """The layers of a biLM, ``(L + 1, n, 2P)`` for n words in sentences."""

    features = ("0", "1", "2", "all", "forward", "backward")

    def __init__(self, weights: str):
        self.nlp = make_nlp(weights, vectors="vocab")

    def __call__(self, sentences: list[list[str]]) -> np.ndarray:
        docs = self.nlp.pipe(Doc(self.nlp.vocab, words=words) for words in sentences)
        return np.concatenate([doc._.elmo_layers for doc in docs], axis=1)


class Embeddings:
    """The layers of another model."""

    def __init__(self, directory: Path, model: str):
        self.vectors = Vectors(directory, model)
        self.features = (*map(str, range(len(self.vectors.layers))), "all")

    def __call__(self, sentences: list[list[str]]) -> np.ndarray:
        return np.concatenate(list(map(self.vectors, sentences)), axis=1)


def bio(doc: Doc) -> list[str]:
    return [f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in doc]


TASKS = {
    "UPOS": Task(read_ewt, 500, lambda doc: [t.pos_ for t in doc]),
    "XPOS": Task(read_ewt, 500, lambda doc: [t.tag_ for t in doc]),
    "dependency": Task(read_ewt, 500, lambda doc: [t.dep_ for t in doc]),
    "entities": Task(read_wnut, 1500, bio),
}


class Cases(NamedTuple):
    """Docs with the features ``(n, D)`` and labels of all tokens, one after the other."""

    docs: list[Doc]
    features: np.ndarray
    labels: list[str]


def select(layers: np.ndarray, feature: str) -> np.ndarray:
    """Features ``(n, D)``: "all" layers ``(L + 1, n, 2P)``, a single one, or one direction's half
    of all layers."""
    half = layers.shape[2] // 2
    if feature == "forward":
        layers = layers[:, :, :half]
    elif feature == "backward":
        layers = layers[:, :, half:]
    elif feature != "all":
        layers = layers[int(feature)][None]
    return np.concatenate(list(layers), axis=1)


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


def entity_f1(docs: list[Doc], tags: list[str]) -> float:
    """F1 in percent of whole entities, from BIO tags."""
    examples, start = [], 0
    for doc in docs:
        found = Doc(doc.vocab, words=[t.text for t in doc])
        biluo = iob_to_biluo(tags[start : start + len(doc)])
        found.ents = biluo_tags_to_spans(found, biluo)
        examples.append(Example(found, doc))
        start += len(doc)
    return 100 * get_ner_prf(examples)["ents_f"]


def score(task: str, model: Regression, cases: Cases) -> float:
    if task == "entities":
        return entity_f1(cases.docs, model.predict(cases.features).tolist())
    return accuracy(model, cases.features, cases.labels)


def probe(task: str, *parts: Cases) -> float:
    """The score of the test set, with the regularization that is best on the dev set."""
    mean, spread = parts[0].features.mean(axis=0), parts[0].features.std(axis=0) + 1e-6
    train, dev, test = (part._replace(features=(part.features - mean) / spread) for part in parts)
    models = (Regression(l2).fit(train.features, train.labels) for l2 in L2)
    return score(task, max(models, key=lambda model: score(task, model, dev)), test)


Reader = Callable[[list[list[str]]], np.ndarray]  # sentences to layers, as `Elmo`


def measure(
    read_layers: Reader,
    data: Path,
    name: str,
    features: Sequence[str],
    seed: int,
    split: str = "test",
) -> dict[str, float]:
    """Scores in percent of each feature.

    Args:
        read_layers: an `Elmo` or `Embeddings`.
        data: see `tasks`.
        name: of a task.
        features: layers' numbers, "all", "forward" or "backward".
        seed: of the training sample.
        split: "test" or "dev".
    """
    task, parts = TASKS[name], []
    for each in ("train", "dev", split):
        docs = [doc for doc in task.read(data, each) if len(doc)]
        if each == "train":
            docs = random.Random(seed).sample(docs, min(task.size, len(docs)))
        layers = read_layers([[t.text for t in doc] for doc in docs])
        parts.append((docs, layers, [label for doc in docs for label in task.label(doc)]))
    return {
        feature: probe(
            name, *(Cases(docs, select(layers, feature), y) for docs, layers, y in parts)
        )
        for feature in features
    }
