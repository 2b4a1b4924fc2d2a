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

NAME = "elmo-scalar-mix"
EPSILON = 1e-5  # in the layer normalization


@dataclass(frozen=True)
class Settings:
    """The arguments of `ScalarMix`; not serialized with the model, so a config can change them."""

    initial_weights: Sequence[float] | None
    gamma: float
    layer_norm: bool
    dropout: float
    l2: float
    trainable: bool


def ScalarMix(
    initial_weights: Sequence[float] | None = None,
    gamma: float = 1.0,
    layer_norm: bool = False,
    dropout: float = 0.0,
    l2: float = 0.0,
    trainable: bool = True,
) -> Model[list[Floats3d], list[Floats2d]]:
    """Layers ``(L + 1, n_tokens, 2P)`` of each Doc to vectors ``(n_tokens, 2P)``.

    Args:
        initial_weights: w_j before the softmax, one for each layer; None for all equal.
        gamma: initial γ.
        layer_norm: normalize each token's vector in each layer to mean 0 and variance 1 first
            (within the token alone, so that no vector depends on a batch).
        dropout: share of the mixed vectors' numbers that is dropped in training, at any rate:
            the ``dropout`` of a training config does not reach it.
        l2: λ; ``λ‖w‖²`` is added to the loss. 1 keeps the mix near an average of the layers, 0.001
            lets it vary (Peters et al. 2018, §3.3).
        trainable: w and γ are learned.

    Raises:
        ValueError: a setting is out of range; or, at the first use, the number of weights is not
            that of the layers.
    """
    if not 0 <= dropout < 1:
        raise ValueError(f"The mix's setting dropout is {dropout}; give 0 or more, below 1.")
    if l2 < 0:
        raise ValueError(f"The mix's setting for λ (l2, mix_l2) is {l2}; give 0 or more.")
    settings = Settings(initial_weights, gamma, layer_norm, dropout, l2, trainable)
    return Model(
        NAME,
        forward,
        init=init,
        dims={"nO": None},
        params={"w": None, "gamma": None},
        attrs={"settings": settings},
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
    settings: Settings = model.attrs["settings"]
    normal = [_normalize(model.ops, x) for x in X] if settings.layer_norm else None
    H = [n for n, _ in normal] if normal is not None else X
    mixed = [model.ops.xp.tensordot(s, h, axes=1) for h in H]  # Σ_j s_j h_j: (n_tokens, 2P)
    Y = [gamma[0] * m for m in mixed]
    masks = None
    if is_train and settings.dropout:
        masks = [model.ops.get_dropout_mask(y.shape, settings.dropout) for y in Y]
        Y = [y * mask for y, mask in zip(Y, masks, strict=True)]

    def backprop(dY: list[Floats2d]) -> list[Floats3d]:
        xp = model.ops.xp
        if masks is not None:
            dY = [d * mask for d, mask in zip(dY, masks, strict=True)]
        if settings.trainable:
            d_gamma, d_s = model.ops.alloc1f(1), model.ops.alloc1f(len(w))
            for h, m, d in zip(H, mixed, dY, strict=True):
                d_gamma += (m * d).sum()
                d_s += gamma[0] * xp.tensordot(h, d, axes=([1, 2], [0, 1]))
            model.inc_grad("gamma", d_gamma)
            model.inc_grad("w", s * (d_s - (s * d_s).sum()) + 2 * settings.l2 * w)
        dX = [(gamma[0] * s)[:, None, None] * d for d in dY]
        if normal is not None:
            dX = [un(d) for (_, un), d in zip(normal, dX, strict=True)]
        return dX

    return Y, backprop


def penalty(model: Model[list[Floats3d], list[Floats2d]]) -> float:
    """``λ‖w‖²`` of a mix, 0 for one that does not learn."""
    settings: Settings = model.attrs["settings"]
    if not (settings.l2 and settings.trainable and model.has_param("w")):
        return 0.0
    w: Any = model.get_param("w")
    return settings.l2 * float((w * w).sum())


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
