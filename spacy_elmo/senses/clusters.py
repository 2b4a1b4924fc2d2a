"""Groups vectors and projects them onto a plane, by scikit-learn, without random choices."""

from __future__ import annotations

import numpy as np

MIN_SILHOUETTE = 0.1  # at or below it, the best division is no better than none
MIN_SIZE = 2  # the size of a group that counts as a sense
MOST_ITEMS = 300  # time and memory grow with their square


def center(vectors: np.ndarray) -> np.ndarray:
    """Subtract the mean of vectors ``(n, d)`` and scale them to length 1.

    The vectors of one word are largely the same in all contexts; the rest tells contexts apart.
    """
    centered = vectors - vectors.mean(axis=0)
    return centered / np.linalg.norm(centered, axis=1, keepdims=True).clip(1e-12)


def cluster(
    distance: np.ndarray, max_clusters: int, n_clusters: int | None = None
) -> tuple[np.ndarray, float | None]:
    """Divide items into groups by average linkage.

    The best division has the highest mean silhouette, among those with `MIN_SIZE` items or more in
    two groups or more. It is used if its silhouette is above `MIN_SILHOUETTE`; otherwise all items
    are one group.

    Args:
        distance: ``(n, n)``, symmetric; n is at least 2.
        max_clusters: the largest number of groups.
        n_clusters: a fixed number of groups instead, at most n.

    Returns:
        The group of each item, ``(n,)``: 0 for the largest; groups of the same size are in the
        order of their first items. And the highest mean silhouette, None if no division was
        compared.

    Raises:
        ValueError: ``n_clusters`` is below 1 or above n.
    """
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics import silhouette_score

    def cut(n: int) -> np.ndarray:
        tree = AgglomerativeClustering(n, metric="precomputed", linkage="average")
        return tree.fit_predict(distance)

    # By rounding, some may be below 0, and the diagonal above.
    distance = np.maximum(distance, 0) * (1 - np.eye(len(distance)))
    numbers = range(2, min(max_clusters, len(distance) - 1) + 1) if n_clusters is None else ()
    best, best_score = cut(1 if n_clusters is None else n_clusters), None
    for groups in map(cut, numbers):
        if (np.bincount(groups) >= MIN_SIZE).sum() >= 2:
            score = float(silhouette_score(distance, groups, metric="precomputed"))
            if best_score is None or score > best_score:
                best, best_score = (groups if score > MIN_SILHOUETTE else best), score
    _, first, index, sizes = np.unique(best, True, True, True)
    return np.argsort(np.lexsort((first, -sizes)))[index], best_score


def project(vectors: np.ndarray) -> np.ndarray:
    """The first two principal components ``(n, 2)`` of vectors ``(n, d)``."""
    from sklearn.decomposition import PCA

    return PCA(2, svd_solver="full").fit_transform(vectors)
