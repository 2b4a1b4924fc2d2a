"""The task's own mix of the biLM's layers, ``γ · Σ_j s_j · h_j`` with ``s = softmax(w)``.

Peters et al. 2018, equation 1. A native thinc layer, because it is what a task learns: weight
averaging reaches thinc's parameters only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from thinc.api import Model, Ops
from thinc.types import Floats2d, Floats3d

EPSILON = 1e-5  # in the layer normalization


@dataclass(frozen=True)
class Settings:
    """The arguments of `ScalarMix`; not serialized with the model, so a config can change them."""

    initial_weights: Sequence[float] | None
    gamma: float
    layer_norm: bool


def ScalarMix(
    initial_weights: Sequence[float] | None = None, gamma: float = 1.0, layer_norm: bool = False
) -> Model[list[Floats3d], list[Floats2d]]:
    """Layers ``(L + 1, n_tokens, 2P)`` of each Doc to vectors ``(n_tokens, 2P)``.

    Args:
        initial_weights: w_j before the softmax, one for each layer; None for all equal.
        gamma: initial γ.
        layer_norm: normalize each token's vector in each layer to mean 0 and variance 1 first
            (within the token alone, so that no vector depends on a batch).

    Raises:
        ValueError: at the first use, if the number of weights is not that of the layers.
    """
    return Model(
        "elmo-scalar-mix",
        forward,
        init=init,
        dims={"nO": None},
        params={"w": None, "gamma": None},
        attrs={"settings": Settings(initial_weights, gamma, layer_norm)},
    )


def init(
    model: Model[list[Floats3d], list[Floats2d]],
    X: list[Floats3d] | None = None,
    Y: list[Floats2d] | None = None,
) -> None:
    if X:
        set_up(model, X[0].shape[0], X[0].shape[2])


def set_up(model: Model[list[Floats3d], list[Floats2d]], n_layers: int, width: int) -> None:
    """Give the mix its parameters, unless it has them."""
    if not model.has_dim("nO"):
        model.set_dim("nO", width)
    if model.has_param("w"):
        return
    settings: Settings = model.attrs["settings"]
    weights = [0.0] * n_layers
    if settings.initial_weights is not None:
        weights = list(settings.initial_weights)
    if len(weights) != n_layers:
        raise ValueError(
            f"The mix's setting initial_weights has {len(weights)} numbers, but the biLM has "
            f"{n_layers} layers (the token layer included). Give one for each, or null."
        )
    model.set_param("w", model.ops.asarray1f(weights))
    model.set_param("gamma", model.ops.asarray1f([settings.gamma]))


def forward(
    model: Model[list[Floats3d], list[Floats2d]], X: list[Floats3d], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats3d]]]:
    if not X:
        return [], lambda dY: []
    set_up(model, X[0].shape[0], X[0].shape[2])
    w: Any = model.get_param("w")
    gamma: Any = model.get_param("gamma")
    s = softmax(model.ops, w)
    normal = [_normalize(model.ops, x) for x in X] if model.attrs["settings"].layer_norm else None
    H = [n for n, _ in normal] if normal is not None else X
    mixed = [model.ops.xp.tensordot(s, h, axes=1) for h in H]  # Σ_j s_j h_j: (n_tokens, 2P)
    Y = [gamma[0] * m for m in mixed]

    def backprop(dY: list[Floats2d]) -> list[Floats3d]:
        xp = model.ops.xp
        d_gamma, d_s = model.ops.alloc1f(1), model.ops.alloc1f(len(w))
        for h, m, d in zip(H, mixed, dY, strict=True):
            d_gamma += (m * d).sum()
            d_s += gamma[0] * xp.tensordot(h, d, axes=([1, 2], [0, 1]))
        model.inc_grad("gamma", d_gamma)
        model.inc_grad("w", s * (d_s - (s * d_s).sum()))
        dX = [(gamma[0] * s)[:, None, None] * d for d in dY]
        if normal is not None:
            dX = [un(d) for (_, un), d in zip(normal, dX, strict=True)]
        return dX

    return Y, backprop


def softmax(ops: Ops, w: Any) -> Any:
    """``exp(w_j) / Σ exp(w_k)`` in float32."""
    e = ops.xp.exp(w - w.max())
    return e / e.sum()


def _normalize(ops: Ops, X: Any) -> tuple[Floats3d, Callable[[Any], Floats3d]]:
    """Each token's vector in each layer to mean 0, variance 1; zeros stay zeros."""
    centered = X - X.mean(axis=2, keepdims=True)
    scale = 1 / ops.xp.sqrt((centered**2).mean(axis=2, keepdims=True) + EPSILON)
    Y = centered * scale

    def backprop(dY: Any) -> Floats3d:
        along = (dY * Y).mean(axis=2, keepdims=True)
        return scale * (dY - dY.mean(axis=2, keepdims=True) - Y * along)

    return Y, backprop
