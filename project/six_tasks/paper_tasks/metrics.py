"""The scores of the paper's tasks, each from its definition."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

Cluster = Collection[Hashable]  # of mentions


class Counts:
    """How many items are right, predicted and in the gold standard; also parts of items."""

    def __init__(self) -> None:
        self.right = self.predicted = self.gold = 0.0
        self.right_gold = 0.0  # where recall has another numerator than precision

    def add(self, predicted: set[Any], gold: set[Any]) -> None:
        both = len(predicted & gold)
        self.add_parts(both, len(predicted), both, len(gold))

    def add_parts(self, right: float, predicted: float, right_gold: float, gold: float) -> None:
        self.right += right
        self.predicted += predicted
        self.right_gold += right_gold
        self.gold += gold

    @property
    def precision(self) -> float:
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.right_gold / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


# ---- SQuAD 1.1 (Rajpurkar et al. 2016)


def normalize_answer(text: str) -> list[str]:
    """Words in lower case, without punctuation and the articles a, an, the."""
    kept = "".join(c for c in text.lower() if c not in string.punctuation)
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def exact_match(ours: str, gold: str) -> bool:
    return normalize_answer(ours) == normalize_answer(gold)


def token_f1(ours: str, gold: str) -> float:
    """F1 of the words of two answers, as bags."""
    a, b = normalize_answer(ours), normalize_answer(gold)
    same = sum((Counter(a) & Counter(b)).values())
    return 2 * same / (len(a) + len(b)) if same else 0.0


# ---- Semantic roles (CoNLL-2005: Carreras and Màrquez)


def join_continued(roles: Iterable[tuple[int, int, str]]) -> set[tuple[str, tuple[Any, ...]]]:
    """Arguments as label and places; ``C-X`` continues the last ``X`` before it."""
    joined: list[tuple[str, list[tuple[int, int]]]] = []
    for start, end, label in sorted(roles):
        name = label.removeprefix("C-")
        before = [parts for other, parts in joined if other == name] if name != label else []
        if before:
            before[-1].append((start, end))
        else:
            joined.append((name, [(start, end)]))
    return {(label, tuple(parts)) for label, parts in joined}


# ---- Coreference (CoNLL-2012: Pradhan et al. 2014)


def muc(predicted: Sequence[Cluster], gold: Sequence[Cluster]) -> tuple[float, ...]:
    """Links (Vilain et al. 1995): numerator and denominator of precision, then of recall."""
    return (*links(predicted, gold), *links(gold, predicted))


def links(clusters: Sequence[Cluster], others: Sequence[Cluster]) -> tuple[float, float]:
    """Of the links that hold clusters together, those that the others have; and all."""
    place = {mention: i for i, other in enumerate(others) for mention in other}
    found = total = 0
    for cluster in clusters:
        parts = {place.get(mention, ("alone", mention)) for mention in cluster}
        found += len(cluster) - len(parts)
        total += len(cluster) - 1
    return found, total


def b_cubed(predicted: Sequence[Cluster], gold: Sequence[Cluster]) -> tuple[float, ...]:
    """Mentions (Bagga and Baldwin 1998): as `muc`."""
    return (*overlaps(predicted, gold), *overlaps(gold, predicted))


def overlaps(clusters: Sequence[Cluster], others: Sequence[Cluster]) -> tuple[float, float]:
    """For each mention, the share of its cluster that is in its other cluster: sum and number."""
    place = {mention: set(other) for other in others for mention in other}
    found = sum(
        len(set(cluster) & place.get(mention, set())) / len(cluster)
        for cluster in clusters
        for mention in cluster
    )
    return found, sum(map(len, clusters))


def ceaf(predicted: Sequence[Cluster], gold: Sequence[Cluster]) -> tuple[float, ...]:
    """Clusters aligned one to one by ``φ4 = 2 |K ∩ R| / (|K| + |R|)`` (Luo 2005): as `muc`."""
    from scipy.optimize import linear_sum_assignment  # of the extra viz

    similar = np.zeros((len(predicted), len(gold)))
    rows = {mention: i for i, cluster in enumerate(predicted) for mention in cluster}
    for j, cluster in enumerate(gold):
        for i, both in Counter(rows[m] for m in cluster if m in rows).items():
            similar[i, j] = 2 * both / (len(predicted[i]) + len(cluster))
    best = float(similar[linear_sum_assignment(similar, maximize=True)].sum())
    return best, len(predicted), best, len(gold)


COREFERENCE = {"muc": muc, "b3": b_cubed, "ceaf": ceaf}


class CoreferenceScores:
    """MUC, B³, CEAF-φ4 and their mean, of all Docs: numerators and denominators are added."""

    def __init__(self) -> None:
        self.counts = {name: Counts() for name in COREFERENCE}

    def add(self, predicted: Sequence[Cluster], gold: Sequence[Cluster]) -> None:
        for name, metric in COREFERENCE.items():
            self.counts[name].add_parts(*metric(predicted, gold))

    def scores(self) -> dict[str, float]:
        found = {f"coref_{name}": counts.f1 for name, counts in self.counts.items()}
        return {"coref_f": sum(found.values()) / len(found), **found}


# ---- GAP (Webster et al. 2018)


class Judgement(NamedTuple):
    """Whether a pronoun and a name refer to the same person, and which pronoun it is."""

    ours: bool
    gold: bool
    is_feminine: bool


def gap_scores(judgements: Iterable[Judgement]) -> dict[str, float]:
    """F1 over all, masculine and feminine pairs, and feminine / masculine, the bias."""
    parts = {"gap_f": Counts(), "gap_masculine": Counts(), "gap_feminine": Counts()}
    for ours, gold, is_feminine in judgements:
        for name in ("gap_f", "gap_feminine" if is_feminine else "gap_masculine"):
            parts[name].add_parts(ours and gold, ours, ours and gold, gold)
    found = {name: counts.f1 for name, counts in parts.items()}
    masculine = found["gap_masculine"]
    return {**found, "gap_bias": found["gap_feminine"] / masculine if masculine else 0.0}
