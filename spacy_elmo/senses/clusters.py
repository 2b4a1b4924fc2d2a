"""Vectors in groups and on a plane; NumPy only, without any random choice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

MIN_SILHOUETTE = 0.1  # below that, the best division is no better than none
MOST_ITEMS = 300  # by default: the time grows with their cube
MIN_SIZE = 2  # of a group that counts as a sense


def center(vectors: np.ndarray) -> np.ndarray:
    """Vectors minus their mean, scaled to length 1, ``(n, d)``.

    The contexts of one word share most of their vectors; what is left tells them apart.
    """
    centered = vectors - vectors.mean(axis=0)
    return centered / np.linalg.norm(centered, axis=1, keepdims=True).clip(1e-12)


def merge_steps(distance: np.ndarray) -> Iterator[np.ndarray]:
    """Average linkage: the groups of each step, from n groups of one item to a single group.

    Args:
        distance: ``(n, n)``, symmetric.

    Yields:
        The group of each item, ``(n,)``: the index of the group's first item.
    """
    n = len(distance)
    between = distance.astype("float64")
    np.fill_diagonal(between, np.inf)
    sizes, groups = np.ones(n), np.arange(n)
    yield groups.copy()
    for _ in range(n - 1):
        i, j = sorted(np.unravel_index(between.argmin(), between.shape))
        merged = (sizes[i] * between[i] + sizes[j] * between[j]) / (sizes[i] + sizes[j])
        merged[i] = np.inf
        between[i], between[:, i] = merged, merged
        between[j], between[:, j] = np.inf, np.inf
        sizes[i] += sizes[j]
        groups[groups == j] = i
        yield groups.copy()


def silhouette(distance: np.ndarray, groups: np.ndarray) -> float:
    """The mean silhouette of a division into two groups or more, from -1 to 1.

    For an item it is ``(b - a) / max(a, b)``, with its mean distance to the rest of its own group,
    a, and to the nearest other group, b; 0 if the item is alone in its group.
    """
    names, index, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    sums = np.stack([distance[:, groups == name].sum(axis=1) for name in names], axis=1)
    own = (np.arange(len(groups)), index)
    a = sums[own] / np.maximum(sizes[index] - 1, 1)
    means = sums / sizes
    means[own] = np.inf
    b = means.min(axis=1)
    values = (b - a) / np.maximum(np.maximum(a, b), 1e-12)
    return float(np.where(sizes[index] > 1, values, 0).mean())


def divide(distance: np.ndarray, most: int, exactly: int | None = None) -> np.ndarray:
    """Divide items into groups by average linkage.

    Args:
        distance: ``(n, n)``.
        most: largest number of groups. Of the divisions with at least `MIN_SIZE` items in at least
            two groups, the one with the highest mean silhouette is taken; a single group, if that
            is below `MIN_SILHOUETTE`.
        exactly: a fixed number of groups instead, at most n.

    Returns:
        The number of each item's group ``(n,)``, 0 for the largest; groups of the same size are in
        the order of their first items.
    """
    steps = list(merge_steps(distance))
    best, best_score = steps[-(exactly or 1)], MIN_SILHOUETTE
    for groups in steps[-most:-1] if exactly is None else []:
        if (np.bincount(groups) >= MIN_SIZE).sum() >= 2:
            score = silhouette(distance, groups)
            if score >= best_score:
                best, best_score = groups, score
    _, index, sizes = np.unique(best, return_inverse=True, return_counts=True)
    rank = np.argsort(np.argsort(-sizes, kind="stable"))
    return rank[index]


def project(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two principal components of vectors.

    Args:
        vectors: ``(n, d)``, both at least 2.

    Returns:
        Coordinates ``(n, 2)``, and the two shares of the variance ``(2,)``. The signs are fixed:
        the largest coordinate of each component is positive.
    """
    centered = vectors - vectors.mean(axis=0)
    u, s, _ = np.linalg.svd(centered.astype("float64"), full_matrices=False)
    points = (u * s)[:, :2]
    largest = np.abs(points).argmax(axis=0)
    points *= np.where(points[largest, [0, 1]] < 0, -1, 1)
    return points, s[:2] ** 2 / max(float((s**2).sum()), 1e-12)
