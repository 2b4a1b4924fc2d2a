"""How well do the compared vectors, and simpler ones, tell what is similar?

``compared`` are the vectors that ``similarity`` uses, ``occurrence`` what `elmo senses` groups; the
others are raw layers and their mean, or counted words.

- Sentences (STS benchmark, training part): Spearman correlation with human scores.
- Word in context (WiC, training part): accuracy at the best threshold of two tokens' cosine.
- Word sense (CoarseWSD-20): nearest centroid of the training occurrences, also by the tf-idf of
  their sentences; accuracy on the test part, mean over the 20 words.
"""

from __future__ import annotations

import json
import lzma
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.pipeline.doc_output import compared_rows
from spacy_elmo.pipeline.similarity import occurrence_vector
from spacy_elmo.text.readers import blank_pipeline
from spacy_elmo.weights.find import find_weights

Vectors = dict[str, np.ndarray]  # by kind, each (n, dimensions)


def make_nlp(weights: str, vectors: str = "elmo") -> Language:
    """A pipeline whose tokens have layers, and vectors that are compared.

    Raises:
        SystemExit: the weights have no statistics, which "elmo" vectors need.
    """
    nlp = blank_pipeline(find_weights(weights), default="en")
    model = {"@architectures": "spacy-elmo.Elmo.v1", "weights": weights}
    nlp.add_pipe("elmo", config={"model": model, "store": ["layers"], "vectors": vectors})
    nlp("Load the weights.")
    if vectors == "elmo" and nlp.get_pipe("elmo").bilm.statistics is None:
        raise SystemExit(f"'{weights}' has no statistics: elmo convert --statistics adds them")
    return nlp


def lines(path: Path) -> Iterator[str]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        yield from (line.rstrip("\n") for line in file)


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True).clip(1e-12)


def cosines(x: np.ndarray) -> np.ndarray:
    """Of the vectors 0 and 1, 2 and 3, …"""
    return (unit(x[::2]) * unit(x[1::2])).sum(axis=1)


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    return float(spearmanr(np.round(a, 7), b).statistic)  # equal ones differ by rounding


def best_threshold(cosine: np.ndarray, same: np.ndarray) -> float:
    """Accuracy of 'the same if the cosine is above a threshold', with the best one."""
    cosine = np.round(cosine, 6)  # equal words have equal vectors, up to rounding
    order = np.argsort(-cosine, kind="stable")
    cosine, same = cosine[order], same[order]
    right = np.cumsum(same) + (~same).sum() - np.cumsum(~same)
    right = right[np.append(cosine[1:] != cosine[:-1], True)]  # no threshold divides equal ones
    return float(max(right.max(), (~same).sum()) / len(same))


def layer_vectors(layers: np.ndarray) -> Vectors:
    """Each layer, and the mean of all."""
    found = {f"layer {number}, raw": layer for number, layer in enumerate(layers)}
    return found | {"mean of layers, raw": layers.mean(axis=0)}


def token_vectors(doc: Doc, tokens: list[int]) -> Iterator[Vectors]:
    """Of some tokens of a Doc that has been read."""
    layers, rows = layer_vectors(doc._.elmo_layers), compared_rows(doc)
    for i in tokens:
        found = {name: vectors[i] for name, vectors in layers.items()}
        yield found | {"occurrence": occurrence_vector(rows, i), "compared": doc[i].vector}


def read(nlp: Language, docs: list[Doc], tokens: list[int] | None) -> Vectors:
    """Vectors of Docs, or of one token of each."""
    found = defaultdict(list)
    for i, doc in enumerate(nlp.pipe(docs)):
        if tokens is None:
            vectors = layer_vectors(doc._.elmo_layers.mean(axis=1)) | {"compared": doc.vector}
        else:
            [vectors] = token_vectors(doc, [tokens[i]])
        for name, vector in vectors.items():
            found[name].append(vector.copy())
    return {name: np.stack(each) for name, each in found.items()}


def lower_words(doc: Doc) -> list[str]:
    return [token.lower_ for token in doc]


def counted(docs: list[Doc]) -> np.ndarray:
    """Cosines of word counts of the Docs 0 and 1, 2 and 3, …"""
    counts = normalize(CountVectorizer(analyzer=lower_words).fit_transform(docs))
    return np.asarray(counts[::2].multiply(counts[1::2]).sum(axis=1)).ravel()


def tf_idf(train: list[Doc], test: list[Doc]) -> tuple[np.ndarray, np.ndarray]:
    """Of both, by the training part's words: ``(n, words)``, each row of length 1."""
    counter = CountVectorizer(analyzer=lower_words, dtype=np.float32)
    counts = counter.fit_transform(train)
    weights = np.log(len(train) / counts.getnnz(axis=0)).astype("float32")
    return unit(counts.toarray() * weights), unit(counter.transform(test).toarray() * weights)


def sentences(nlp: Language, data: Path, most: int | None) -> dict[str, float]:
    rows = [line.split("\t") for line in lines(data / "sim/stsb-train.tsv.xz")][:most]
    gold = np.array([float(row[4]) for row in rows])
    docs = [nlp.make_doc(text) for row in rows for text in row[5:7]]
    weighted, _ = tf_idf(docs, [])
    found = {
        "counted words": spearman(counted(docs), gold),
        "counted words, tf-idf": spearman(cosines(weighted), gold),
    }
    vectors = read(nlp, docs, None)
    return found | {name: spearman(cosines(x), gold) for name, x in vectors.items()}


def in_context(nlp: Language, data: Path, most: int | None) -> dict[str, float]:
    rows = [line.split("\t") for line in lines(data / "wsd/wic-train.tsv.xz")][:most]
    same = np.array([row[0] == "T" for row in rows])
    docs = [Doc(nlp.vocab, text.split(" ")) for row in rows for text in row[4:6]]
    vectors = read(nlp, docs, [int(i) for row in rows for i in row[3].split("-")])
    return {name: best_threshold(cosines(x), same) for name, x in vectors.items()}


def first_of_each(rows: list[dict[str, Any]], most: int | None) -> list[dict[str, Any]]:
    """No more than so many occurrences of each word."""
    by_word = defaultdict(list)
    for row in rows:
        by_word[row["word"]].append(row)
    return [row for occurrences in by_word.values() for row in occurrences[:most]]


def nearest_sense(
    train: np.ndarray, sense: np.ndarray, test: np.ndarray, n_senses: int
) -> np.ndarray:
    """Index of the sense whose mean vector is nearest to each vector of the test part."""
    centroids = np.stack([train[sense == i].mean(axis=0) for i in range(n_senses)])
    return (unit(test) @ unit(centroids).T).argmax(axis=1)


def senses(nlp: Language, data: Path, most: int | None) -> dict[str, float]:
    parts = []
    for part in ("train", "test"):
        rows = [json.loads(line) for line in lines(data / f"wsd/coarsewsd20/{part}.jsonl.xz")]
        rows = first_of_each(rows, most)
        docs = [Doc(nlp.vocab, [w or "_" for w in row["text"].split(" ")]) for row in rows]
        vectors = read(nlp, docs, [row["index"] for row in rows])
        words = np.array([row["word"] for row in rows])
        parts.append((words, np.array([row["sense"] for row in rows]), docs, vectors))
    (train_words, train_senses, train_docs, train), (words, gold, docs, test) = parts
    scores = defaultdict(list)
    for word in sorted(set(words)):
        known, asked = np.flatnonzero(train_words == word), np.flatnonzero(words == word)
        names, sense, counts = np.unique(
            train_senses[known], return_inverse=True, return_counts=True
        )
        found = {kind: (train[kind][known], test[kind][asked]) for kind in train}
        found["sentence, tf-idf"] = tf_idf([train_docs[i] for i in known], [docs[i] for i in asked])
        scores["most frequent sense"].append((gold[asked] == names[counts.argmax()]).mean())
        for kind, (x, y) in found.items():
            nearest = names[nearest_sense(x, sense, y, len(names))]
            scores[kind].append((gold[asked] == nearest).mean())
    return {kind: float(np.mean(values)) for kind, values in scores.items()}
