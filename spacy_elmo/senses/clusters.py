"""Vectors in groups and on a plane, by scikit-learn, without any random choice."""

from __future__ import annotations

import numpy as np

MIN_SILHOUETTE = 0.1  # below that, the best division is no better than none
MIN_SIZE = 2  # of a group that counts as a sense
MOST_ITEMS = 300  # by default: time and memory grow with their square


def center(vectors: np.ndarray) -> np.ndarray:
    """Vectors minus their mean, scaled to length 1, ``(n, d)``.

    The contexts of one word share most of their vectors; what is left tells them apart.
    """
    centered = vectors - vectors.mean(axis=0)
    return centered / np.linalg.norm(centered, axis=1, keepdims=True).clip(1e-12)


def divide(
    distance: np.ndarray, most: int, exactly: int | None = None
) -> tuple[np.ndarray, float | None]:
    """Divide items into groups by average linkage.

    Args:
        distance: ``(n, n)``, symmetric; n is at least 2.
        most: largest number of groups. Of the divisions with at least `MIN_SIZE` items in at least
            two groups, the one with the highest mean silhouette is taken; a single group, if that
            is below `MIN_SILHOUETTE`.
        exactly: a fixed number of groups instead, at most n.

    Returns:
        The number of each item's group ``(n,)``, 0 for the largest; groups of the same size are in
        the order of their first items. And the highest mean silhouette, of a division that was
        taken or not; None if there was none to compare.

    Raises:
        ValueError: scikit-learn's, of a fixed number below 1 or above n.
    """
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics import silhouette_score

    def cut(n: int) -> np.ndarray:
        tree = AgglomerativeClustering(n, metric="precomputed", linkage="average")
        return tree.fit_predict(distance)

    # Rounding may leave less than 0, and some on the diagonal.
    distance = np.maximum(distance, 0) * (1 - np.eye(len(distance)))
    numbers = range(2, min(most, len(distance) - 1) + 1) if exactly is None else ()
    best, best_score = cut(1 if exactly is None else exactly), None
    for groups in map(cut, numbers):
        if (np.bincount(groups) >= MIN_SIZE).sum() >= 2:
            score = float(silhouette_score(distance, groups, metric="precomputed"))
            if best_score is None or score > best_score:
                best, best_score = (groups if score > MIN_SILHOUETTE else best), score
    _, first, index, sizes = np.unique(best, True, True, True)
    return np.argsort(np.lexsort((first, -sizes)))[index], best_score


def project(vectors: np.ndarray) -> np.ndarray:
    """The first two principal components of vectors ``(n, d)``, ``(n, 2)``."""
    from sklearn.decomposition import PCA

    return PCA(2, svd_solver="full").fit_transform(vectors)
