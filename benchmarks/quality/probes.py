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
import spacy
import torch
from embedded import places
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
        self.nlp = spacy.blank("en")
        model = {"@architectures": "spacy-elmo.Elmo.v1", "weights": weights}
        self.elmo = self.nlp.add_pipe("elmo", config={"store": ["layers"], "model": model})
        self.nlp.initialize()

    def __call__(self, sentences: list[list[str]]) -> np.ndarray:
        docs = self.elmo.pipe(Doc(self.nlp.vocab, words=words) for words in sentences)
        return np.concatenate([doc._.elmo_layers for doc in docs], axis=1)


class Embeddings:
    """The layers of another model, as `embedded` describes them."""

    def __init__(self, directory: Path, model: str):
        self.layers = np.load(directory / f"{model}.npy", mmap_mode="r")
        self.places = places(str(directory))
        self.features = (*map(str, range(len(self.layers))), "all")

    def __call__(self, sentences: list[list[str]]) -> np.ndarray:
        starts = [self.places[tuple(words)] for words in sentences]
        rows = np.concatenate(
            [i + np.arange(len(w)) for i, w in zip(starts, sentences, strict=True)]
        )
        return self.layers[:, rows].astype("float32")


def bio(doc: Doc) -> list[str]:
    return [f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in doc]


TASKS = {
    "UPOS": Task(read_ewt, 500, lambda doc: [t.pos_ for t in doc]),
    "XPOS": Task(read_ewt, 500, lambda doc: [t.tag_ for t in doc]),
    "dependency": Task(read_ewt, 500, lambda doc: [t.dep_ for t in doc]),
    "entities": Task(read_wnut, 1500, bio),
}


def regression(x: torch.Tensor, y: torch.Tensor, n_labels: int, l2: float) -> torch.Tensor:
    """Weights ``(D + 1, labels)`` of a multinomial logistic regression, by L-BFGS."""
    weights = torch.zeros(x.shape[1] + 1, n_labels, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weights], max_iter=MAX_STEPS, history_size=10, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(x @ weights[:-1] + weights[-1], y)
        value = value + l2 * weights[:-1].square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    return weights.detach()


class Sentences(NamedTuple):
    """Docs with the layers ``(L + 1, n, 2P)`` and labels of all tokens, one after the other."""

    docs: list[Doc]
    layers: np.ndarray
    labels: list[str]

    def select(self, feature: str) -> Cases:
        """With "all" layers, a single one, or one direction's half of all layers."""
        layers, half = self.layers, self.layers.shape[2] // 2
        if feature == "forward":
            layers = layers[:, :, :half]
        elif feature == "backward":
            layers = layers[:, :, half:]
        elif feature != "all":
            layers = layers[int(feature)][None]
        return Cases(self.docs, np.concatenate(list(layers), axis=1), self.labels)


class Cases(NamedTuple):
    """Docs with the features ``(n, D)`` and labels of their tokens."""

    docs: list[Doc]
    features: np.ndarray
    labels: list[str]

    def standardised(self, mean: np.ndarray, spread: np.ndarray) -> torch.Tensor:
        return torch.from_numpy((self.features - mean) / spread)


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


def score(
    task: str, split: Cases, x: torch.Tensor, weights: torch.Tensor, names: list[str]
) -> float:
    chosen = (x @ weights[:-1] + weights[-1]).argmax(dim=1)
    tags = [names[i] for i in chosen]
    if task == "entities":
        return entity_f1(split.docs, tags)
    return 100 * float(np.mean(np.array(tags) == np.array(split.labels)))


def probe(task: str, train: Cases, dev: Cases, test: Cases) -> float:
    """The score of the test set, with the regularization that is best on the dev set."""
    names, x = sorted(set(train.labels)), train.features
    mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-6
    y = torch.tensor([names.index(label) for label in train.labels])
    inputs = torch.from_numpy((x - mean) / spread)
    on_dev, on_test = dev.standardised(mean, spread), test.standardised(mean, spread)
    best = (-1.0, torch.empty(0))
    for l2 in L2:
        weights = regression(inputs, y, len(names), l2)
        best = max(best, (score(task, dev, on_dev, weights, names), weights), key=lambda r: r[0])
    return score(task, test, on_test, best[1], names)


Reader = Callable[[list[list[str]]], np.ndarray]  # sentences to layers, as `Elmo`


def measure(
    read_layers: Reader,
    data: Path,
    name: str,
    features: Sequence[str],
    seeds: Sequence[int],
    split: str = "test",
) -> dict[str, list[float]]:
    """Scores in percent of each feature, one for each seed.

    Args:
        read_layers: an `Elmo` or `Embeddings`.
        data: see `tasks`.
        name: of a task.
        features: layers' numbers, "all", "forward" or "backward".
        seeds: of the training samples.
        split: "test" or "dev".
    """
    task = TASKS[name]

    def read(split: str, seed: int | None) -> Sentences:
        docs = [doc for doc in task.read(data, split) if len(doc)]
        docs = docs if seed is None else random.Random(seed).sample(docs, min(task.size, len(docs)))
        layers = read_layers([[t.text for t in doc] for doc in docs])
        return Sentences(docs, layers, [label for doc in docs for label in task.label(doc)])

    dev, test = read("dev", None), read(split, None)
    scores: dict[str, list[float]] = {feature: [] for feature in features}
    for seed in seeds:
        train = read("train", seed)
        for feature in features:
            parts = [each.select(feature) for each in (train, dev, test)]
            scores[feature].append(probe(name, *parts))
    return scores
